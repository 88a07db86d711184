#pragma once
// The graphs of the units of networks, each distinct graph once, and the tables that name them; questions about them to
// a cuDNN, in processes of their own.

#include <array>
#include <set>

#include "bench/io/result_file.h"
#include "engines.h"

namespace lamina::bench {

/// A graph of some networks, kept once.
struct Query {
  Spec spec;
  Pass pass;
  std::string graph;
  Json uses = Json::array();  ///< for each network its name, its first unit, the number of its units
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

/// The answers of one version: with TF32, and about f32 without. Each has in "cudnn" its version and directory and
/// whether there is a driver's library, the number of "plans" and of those that were "loaded", and "engines": for each
/// query in order the list of its engines. Without TF32, engines that use tensor cores all the same are left out. An
/// engine has its number, list ("a" or "fallback"), notes, knobs, workspace_bytes and, if it was to be built, its plan
/// or why it is refused.
using Answers = std::array<Json, 2>;

/// Asks the cuDNN of a directory in two processes at once, made by fork: call it before there are threads. Throws
/// UsageError for properties that the library rejects, else Error.
Answers ask(const std::string& directory, const std::string& properties, const std::vector<Query>&,
            const EnginesOptions&);

}  // namespace lamina::bench
