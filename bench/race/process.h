#pragma once
// Another program run to its end.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace lamina::bench {

struct Ended {
  int status = 0;           ///< as a shell has it: 128 + the signal that ended it
  std::string description;  ///< "exit status 1", "signal 11 (Segmentation fault)"
};

/// Runs `program` with `arguments` (without its own name) and waits. Its standard output goes nowhere, its standard
/// error is ours; `environment` replaces variables. It has a process group of its own, so that a terminal's signal does
/// not reach it, and each interrupt that this process counts is handed on to the group. Throws UsageError when the
/// program cannot be started.
Ended run_process(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                  const std::map<std::string, std::string>& environment = {});

/// The file that this process runs.
std::filesystem::path own_program();

}  // namespace lamina::bench
