#pragma once
// The questions to cuDNN: the distinct graphs of the units of networks, and the tables that name the graphs. A cuDNN is
// asked in child processes.

#include <array>
#include <set>

#include "bench/io/result_file.h"
#include "engines.h"

namespace lamina::bench {

/// A distinct graph, which several units of networks may have.
struct Query {
  Spec spec;
  Pass pass;
  std::string graph;
  Json uses = Json::array();  ///< for each network with this graph: its name, its first unit, the number of its units
};

/// A row of a table: the units of a network whose pass has the same graph.
struct GraphRow {
  std::string unit;  ///< name of the first unit
  Spec spec;
  Pass pass;
  std::vector<std::size_t> queries{};  ///< index of the query for each type
  int units = 1;                       ///< number of units
};

/// The table of a network at one batch and layout.
struct GraphTable {
  std::string title;
  std::vector<GraphRow> rows{};
  std::set<std::string> without{};  ///< names of ops that have no graph
};

struct Questions {
  std::vector<Query> queries{};
  std::vector<GraphTable> tables{};
};

/// The ops of a unit: "conv(64, 7x7) + relu".
std::string ops_text(const Spec&);

/// The name of a pass: "backward_data", or "backward_data+fused" if it applies the mask of the ReLU before the unit.
std::string pass_text(const Spec&, Pass);

/// The graphs of all networks, batches and layouts of the options, in this order, in all their types.
Questions questions_of(const EnginesOptions&);

/// The answers of one version of cuDNN: [0] with TF32 allowed; [1] for f32 with TF32 forbidden, without engines that
/// use tensor cores in spite of that. An answer has "cudnn" (version, directory, whether the driver's library is
/// there), the number of "plans", the number of plans that were "loaded" from the folder of plans, and "engines", a
/// list for each query in order. An engine has its number, list ("a" or "fallback"), notes, knobs, workspace_bytes and,
/// if it was to be built, "plan" or the reason "refused".
using Answers = std::array<Json, 2>;

/// Asks the cuDNN of a directory in two processes at once, made by fork: call it before there are threads. Throws
/// UsageError for properties that the library rejects, else Error.
Answers ask(const std::string& directory, const std::string& properties, const std::vector<Query>&,
            const EnginesOptions&);

}  // namespace lamina::bench
