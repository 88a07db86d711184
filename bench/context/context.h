#pragma once
// The context of a result file: the facts of machine and build that a reader of the file cannot find out later. Also
// the devices of this machine, as a table with measured rates and as facts for the context.

#include <string>
#include <utility>
#include <vector>

#include "bench/io/result_file.h"
#include "bench/machine/peaks.h"

namespace lamina::bench {

/// The rest of the first line that begins with `key`, without the colon and blanks, in a file such as those in /proc.
/// Empty: there is no such line.
std::string value_of(const char* path, const std::string& key);

/// The facts that change during a run: load average, clock and temperature of the processors, time. Each key ends in
/// "_" and `when`: "time_start".
Json runtime_context(const std::string& when);

/// The facts of Google Benchmark, machine, build and backends before anything runs: processor, memory, GPUs,
/// system, compiler and flags, versions of libraries, commit, number of threads.
Json start_context(Backends&);
void add_peaks(Json& context, const Peaks&);  ///< adds the peak rates that were measured so far
/// Adds the peak rates, and the facts that changed during the run.
void end_context(Json& context, const Peaks&);

/// Begins a file of results with its context and an empty list, whose name is `list`.
void begin(ResultFile&, Backends&, const char* list);
/// Completes the context and writes the file. Throws FileError.
void finish(ResultFile&, const Peaks&);

struct MeasuredDevice {
  DeviceInfo device{};
  DeviceRates rates{};    ///< rates; the rate of a processor's units is the median of several measurements
  double units_most = 0;  ///< greatest of these measurements, in flop/s
};

/// A row for each device. A number that is 0 is an empty cell.
TextTable device_columns(const std::vector<MeasuredDevice>&);

/// Measures each device that is found, in a few seconds. If there is no GPU, or a device cannot be measured, a line
/// below the table says why.
std::string device_table(Backends&, Peaks&, Format);

/// A GPU's name in the context, "gpu_0", and its properties in one line.
std::pair<std::string, std::string> gpu_fact(const DeviceInfo&);

/// The devices' properties, without measured rates, and the versions that are known without opening a library.
Json device_facts();

}  // namespace lamina::bench
