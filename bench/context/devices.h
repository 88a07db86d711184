#pragma once
// The devices of this machine: as a table with what they were measured to reach, and as facts for the context.

#include <string>
#include <vector>

#include "bench/io/text.h"
#include "bench/machine/peaks.h"
#include "context.h"
#include "lamina/devices.h"

namespace lamina::bench {

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
