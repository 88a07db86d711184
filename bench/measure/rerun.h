#pragma once
// The commands that measure a result again.

#include <string>
#include <vector>

#include "bench/options/settings.h"
#include "config.h"

namespace lamina::bench {

/// Words as one line for a shell.
std::string shell_line(const std::vector<std::string>& words);

/// "lamina_bench ledger resnet50 --backend=eigen --batch=32": a subcommand for one network, with the flags that differ
/// from the defaults, and `more` flags.
std::string rerun(const char* subcommand, const Config&, const PlanningSettings&,
                  const std::vector<std::string>& more = {});

/// "lamina_bench run '--benchmark_filter=^net/resnet50/total/.*$' ...": a row by its name.
std::string rerun_row(const std::string& name, const Config&, const PlanningSettings&,
                      const std::vector<std::string>& more = {});

/// --passes, if it is not 0: the default.
std::vector<std::string> passes_flag(int passes);

}  // namespace lamina::bench
