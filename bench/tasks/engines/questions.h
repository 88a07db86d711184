#pragma once
// The graphs of the units of networks, each distinct graph once, and the tables that name them; questions about them to
// a cuDNN, in processes of their own.

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

/// The answers of one version. For each query in order there is an object of lists: "engines" or, for f32, "tf32" and
/// "strict": TF32 is forbidden, and engines that use tensor cores all the same are left out. An engine has its number,
/// list ("a" or "fallback"), notes, knobs, workspace_bytes and, if it was to be built, its plan or why it is refused.
struct Version {
  std::string number, directory;
  int plans = 0, loaded = 0;
  std::vector<Json> answers{};
};

/// Asks the cuDNN of a directory in two processes at once, made by fork: call it before there are threads. Throws what
/// CudnnEngines does, and DeviceError where the library ended a process.
Version ask(const std::string& directory, const std::string& properties, const std::vector<Query>&,
            const EnginesOptions&);

}  // namespace lamina::bench
