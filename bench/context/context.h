#pragma once
// The context of a file of results: what a reader of the file cannot find out later of machine and build.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bench/io/result_file.h"
#include "bench/machine/backends.h"
#include "bench/machine/peaks.h"

namespace lamina::bench {

using Fact = std::pair<std::string, std::string>;
using Facts = std::vector<Fact>;

/// Known before anything runs: processor, memory, GPUs, system, compiler and flags, versions of every library in the
/// headers and at run time, commit, how it will be timed.
Facts static_context(Backends&);

/// What changes meanwhile: load average, clock and temperature of the processors, time; each key ends in "_" and
/// `when`.
Facts runtime_context(const std::string& when);

/// What Google Benchmark, the machine, the build and the backends say before anything runs.
nlohmann::ordered_json start_context(Backends&);
void add_peaks(nlohmann::ordered_json& context, const Peaks&);  ///< the rates that were measured so far
/// Adds the rates, and what changed meanwhile.
void end_context(nlohmann::ordered_json& context, const Peaks&);

/// A file of results with its context. Without a path it does nothing.
class Results {
 public:
  /// Throws FileError where it cannot be written.
  Results(Backends&, const std::filesystem::path&, const char* list);
  bool wanted() const { return !file_.path().empty(); }
  /// Adds to the list; `rerun`: the command that measures it again. The file is written now and then.
  void add(nlohmann::ordered_json result, const std::string& rerun);
  void add_to(const char* list, nlohmann::ordered_json entry);
  void try_to_save() { file_.try_to_save(); }
  void finish(const Peaks&);  ///< throws FileError

 private:
  ResultFile file_;
  const char* list_;
};

}  // namespace lamina::bench
