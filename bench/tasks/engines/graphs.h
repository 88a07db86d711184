#pragma once
// The graphs of the units of networks: each distinct graph once, and the tables that name them.

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "engines.h"
#include "lamina/backend.h"

namespace lamina::bench {

/// A graph of some networks, kept once.
struct Query {
  Spec spec;
  Pass pass;
  std::string graph;
  nlohmann::ordered_json uses =
      nlohmann::ordered_json::array();  ///< for each network its name, its first unit, the number of its units
};

/// A line of a table: units whose pass has the same graph, and the numbers of its queries, by type.
struct GraphRow {
  std::string unit;
  Spec spec;
  Pass pass;
  std::vector<std::size_t> queries{};
  int units = 1;
};

/// A network at one batch and layout.
struct GraphTable {
  std::string title;
  std::vector<GraphRow> rows{};
  std::set<std::string> without{};  ///< names of ops that have no graph
};

struct Questions {
  std::vector<Query> queries{};
  std::vector<GraphTable> tables{};
};

/// "conv(64, 7x7) + relu"
std::string ops_text(const Spec&);

/// "backward_data+fused" with the mask of the ReLU before the unit.
std::string pass_text(const Spec&, Pass);

/// The graphs of all networks, batches and layouts of the options, in this order, in all their types.
Questions questions_of(const EnginesOptions&);

}  // namespace lamina::bench
