#pragma once
// The key of a row or result: all that its time depends on, except machine, versions and number of threads; and the
// commands that measure the row again.

#include <string>
#include <string_view>
#include <vector>

#include "bench/io/result_file.h"
#include "session.h"

namespace lamina::bench {

/// A row's name is printed from these fields. The JSON has them too, so that nothing parses a name:
///   "what"       "net", "layer", "train"; for other results "ledger", "frontier", "memory"
///   "network"    for "train" the workload
///   "layer"      for "layer" the node
///   "part"       the pass, or "epoch"
///   "algorithm"  for "layer" the algorithm that was asked for: a name, or "default"
///   "differs"    the settings that are not the defaults: {"image": "64", "graph": ""}
/// and "backend", "type", "layout", "batch".
using RowKey = Json;

/// The key of a row or result. It includes the settings that are not the defaults.
RowKey key_of(const char* what, const Config&, std::string_view part, const PlanningSettings&,
              std::string_view layer = {}, std::string_view algorithm = {});

/// Words as one line for a shell.
std::string shell_line(const std::vector<std::string>& words);

/// "lamina_bench ledger resnet50 --backend=eigen --batch=32": a subcommand for one network, with the flags that differ
/// from the defaults, and `more` flags.
std::string rerun(const char* subcommand, const Config&, const PlanningSettings&,
                  const std::vector<std::string>& more = {});

/// "lamina_bench run '--benchmark_filter=^net/resnet50/total/.*$' ...": a row by its name.
std::string rerun_row(const std::string& name, const Config&, const PlanningSettings&,
                      const std::vector<std::string>& more = {});

/// --passes; empty for 0, the default.
std::vector<std::string> passes_flag(int passes);

}  // namespace lamina::bench
