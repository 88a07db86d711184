#pragma once
// The things that a plan numbers: nodes with the values they make, units, and steps of its clock. Each has a type of
// its own, so that a number of one kind cannot be used as another.

#include <cstddef>
#include <ranges>
#include <utility>
#include <vector>

#include "lamina/graph.h"

namespace lamina::planner {

enum class NodeId : int {};  ///< a node of the graph, and the value that it makes
enum class UnitId : int {};  ///< units in the order in which they run forward
enum class Step : int {};    ///< one clock counts the steps of both passes: see Units

/// The id that stands for nothing.
template <class Id>
constexpr Id none{-1};

template <class Id>
constexpr std::size_t index(Id id) {
  return static_cast<std::size_t>(id);
}

/// The first `count` ids, in order.
template <class Id>
auto first_ids(std::size_t count) {
  return std::views::iota(0, static_cast<int>(count)) | std::views::transform([](int i) { return Id{i}; });
}

/// One element for each node or unit.
template <class Id, class T>
class Each {
 public:
  Each() = default;
  explicit Each(std::size_t count, const T& value = T()) : all_(count, value) {}
  explicit Each(std::vector<T> all) : all_(std::move(all)) {}

  decltype(auto) operator[](Id id) { return all_[index(id)]; }
  decltype(auto) operator[](Id id) const { return all_[index(id)]; }
  std::size_t size() const { return all_.size(); }
  auto ids() const { return first_ids<Id>(all_.size()); }
  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  void push_back(T value) { all_.push_back(std::move(value)); }

 private:
  std::vector<T> all_;
};

template <class T>
using EachNode = Each<NodeId, T>;
template <class T>
using EachUnit = Each<UnitId, T>;

/// The nodes of a graph, which must outlive it.
class Nodes {
 public:
  explicit Nodes(const Graph& graph) : graph_(&graph), all_(&graph.nodes()) {}

  const Graph& graph() const { return *graph_; }
  const Node& operator[](NodeId id) const { return (*all_)[index(id)]; }
  std::size_t size() const { return all_->size(); }
  auto ids() const { return first_ids<NodeId>(all_->size()); }
  NodeId output() const { return NodeId{static_cast<int>(all_->size()) - 1}; }
  bool is_input(NodeId id) const { return std::holds_alternative<Input>((*this)[id].op); }
  NodeId input(NodeId id, std::size_t k) const { return NodeId{(*this)[id].inputs[k]}; }
  auto inputs(NodeId id) const {
    return (*this)[id].inputs | std::views::transform([](int i) { return NodeId{i}; });
  }

 private:
  const Graph* graph_;
  const std::vector<Node>* all_;
};

}  // namespace lamina::planner
