#pragma once
// The context of a file of results: what a reader of the file cannot find out later of machine and build. And the
// devices of this machine: as a table with what they were measured to reach, and as facts for the context.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bench/io/result_file.h"
#include "bench/io/text.h"
#include "bench/machine/backends.h"
#include "bench/machine/peaks.h"
#include "lamina/devices.h"

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

struct MeasuredDevice {
  DeviceInfo device{};
  DeviceRates rates{};
  /// The rate of fp32 multiply-adds in registers, on every core or multiprocessor; of a processor the median
  /// of several moments, and the greatest.
  double units_flops_per_second = 0, units_most = 0;
};

/// A row for each; what is 0 is an empty cell.
TextTable device_columns(const std::vector<MeasuredDevice>&);

/// Measures each device that is found, some seconds in all. Without a GPU, or where one cannot be measured, a line
/// below the table says why.
std::string device_table(Backends&, Peaks&, Format);

/// A GPU's properties: "gpu_0" and one line.
Fact gpu_fact(const DeviceInfo&);

/// Properties only, and versions that are known without opening a library.
Facts device_facts();

}  // namespace lamina::bench
