#pragma once
// The key of a row or another result: all that the time depends on, except machine, versions and number of threads. And
// the commands that measure the row again.

#include <string>
#include <string_view>
#include <vector>

#include "bench/io/result_file.h"
#include "session.h"

namespace lamina::bench {

/// The fields of a key. A row's name is made of them. Files have the fields, too, so that no reader parses a name:
///   "what"       "net", "layer", "train"; for other results "ledger", "frontier", "memory"
///   "network"    the network; for "train" the workload
///   "layer"      the node; only for "layer"
///   "part"       the pass, or "epoch"
///   "algorithm"  the requested algorithm, a name or "default"; only for "layer"
///   "differs"    the settings that are not the defaults: {"image": "64", "graph": ""}
/// and "backend", "type", "layout", "batch".
using RowKey = Json;

/// The key of a row or another result. It includes the settings that are not the defaults.
RowKey key_of(const char* what, const Config&, std::string_view part, const PlanningSettings&,
              std::string_view layer = {}, std::string_view algorithm = {});

/// Words as one line for a shell.
std::string shell_line(const std::vector<std::string>& words);

/// The command that runs a subcommand for one network, with the flags that differ from the defaults, then the flags
/// `more`: "lamina_bench ledger resnet50 --backend=eigen --batch=32".
std::string rerun(const char* subcommand, const Config&, const PlanningSettings&,
                  const std::vector<std::string>& more = {});

/// The command that measures the row of this name: "lamina_bench run '--benchmark_filter=^net/resnet50/total/.*$' ...".
std::string rerun_row(const std::string& name, const Config&, const PlanningSettings&,
                      const std::vector<std::string>& more = {});

/// The flag --passes. Empty for 0, the default.
std::vector<std::string> passes_flag(int passes);

}  // namespace lamina::bench
