#pragma once
// The bytes of a model that is written: nodes, numbers, inputs and outputs.

#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "lamina/shape.h"
#include "lib/onnx/file/messages.h"

namespace lamina::onnx {

struct AttributeOut {
  const char* name;
  std::variant<std::int64_t, double, std::string, Extents> value;
};

struct NodeOut {
  const char* op_type;
  std::string name;
  std::vector<std::string> inputs;
  std::string output;
  std::vector<AttributeOut> attributes{};
  int unused = 0;  ///< number of unused outputs before this one
};

class ModelOut {
 public:
  explicit ModelOut(std::string file) : file_(std::move(file)) {}
  ModelOut(const ModelOut&) = delete;  // the writer points at graph_
  ModelOut& operator=(const ModelOut&) = delete;

  void take(const std::string& name) { taken_.insert(name); }
  /// The name, or a similar one if it is taken. Marks the result as taken.
  std::string free_name(std::string name);
  void add(const NodeOut&);
  /// Adds an initializer, and returns its name. FileError for a number out of f32's range.
  std::string add_numbers(const std::string& name, const Extents&, std::span<const double>);
  std::string add_integers(const std::string& name, const Extents&);
  /// Records whether an initializer trains.
  void add_role(std::string_view initializer, bool trains);
  void add_input(const std::string& name, const Shape& shape) { add_value(11, name, shape, false); }
  /// A matrix has no rows and columns.
  void add_output(const std::string& name, const Shape& its, bool matrix) { add_value(12, name, its, matrix); }
  /// The bytes of the file. `graph` is the name of its graph.
  std::string bytes(const std::string& graph);

 private:
  using Writer = protozero::pbf_writer;

  void add_value(std::uint32_t field, const std::string& name, const Shape&, bool matrix);
  void add_tensor(const std::string& tensor);
  [[noreturn]] void fail_long() const;

  std::string file_;
  std::unordered_set<std::string> taken_{};  ///< names of values of the file
  std::string signature_{};                  ///< a line for each parameter or buffer, in the form of PyTorch's exporter
  std::string graph_{};
  Writer out_{graph_};
};

}  // namespace lamina::onnx
