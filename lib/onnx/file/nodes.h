#pragma once
// The nodes of a file: whether each is needed or done, and the readers of each value.

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "messages.h"

namespace lamina::onnx {

class Nodes {
 public:
  explicit Nodes(std::string file) : file_(std::move(file)) {}

  /// Notes an input or an initializer. False if the name is taken.
  bool make(std::string_view value) { return made_.insert(value).second; }
  bool has(std::string_view value) const { return made_.contains(value); }
  /// Appends the nodes of a graph. A node is live if a wanted value needs it. Throws FileError for a value that is read
  /// before it is made, or made twice. So there are no cycles.
  void add(const GraphMessage&, std::set<std::string_view> wanted);

  std::size_t size() const { return nodes_.size(); }
  const NodeMessage& operator[](std::size_t i) const { return *nodes_[i]; }
  bool is_open(std::size_t i) const { return live_[i] && !done_[i]; }  ///< whether it is needed and not done
  void finish(std::size_t i) { done_[i] = 1; }
  /// Live nodes that read a value, themselves or in a branch.
  const std::vector<std::size_t>& readers(std::string_view value) const;

 private:
  std::set<std::string_view> reads(const NodeMessage&, int depth = 0) const;

  std::string file_;  ///< name of the file
  std::vector<const NodeMessage*> nodes_{};
  std::vector<char> live_{}, done_{};
  std::set<std::string_view> made_{};  ///< inputs, initializers and results of nodes
  std::unordered_map<std::string_view, std::vector<std::size_t>> readers_{};
};

}  // namespace lamina::onnx
