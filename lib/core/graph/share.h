#pragma once
// Parameters and running statistics that several nodes use.

#include <string>
#include <string_view>
#include <vector>

#include "lamina/graph.h"

namespace lamina::graph {

/// The members of a node that describe its parameters, or its states.
struct Slots {
  std::vector<Shape> Node::*shapes;
  std::vector<Slot> Node::*of;
  std::vector<std::string_view> (*names)(const Op&);
};
inline constexpr Slots parameter_slots{&Node::params, &Node::params_of, parameter_names};
inline constexpr Slots state_slots{&Node::state, &Node::state_of, state_names};

/// The results of Graph::parameters and Graph::states.
std::vector<Stored> stored(const std::vector<Node>&, const Slots&);

/// The work of Graph::share and Graph::share_all, which document the exceptions. `graph` is the graph's name.
void share(const std::string& graph, std::vector<Node>&, std::string_view tensor, std::string_view with);
void share_all(const std::string& graph, std::vector<Node>&, int node, int with);

/// The work of Graph::fix, which documents the exceptions.
void fix(const std::string& graph, std::vector<Node>&, std::string_view parameter);

}  // namespace lamina::graph
