#pragma once
// What is measured, and what becomes of many of them.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lamina/device.h"

namespace lamina::bench {

/// How a time includes the host's launches.
enum class Launches : std::uint8_t {
  none,      ///< not applicable: the work runs while it is enqueued, as on a processor
  included,  ///< the device was idle at the start and waited for the host, as it does for a user
  hidden,    ///< the device was held until all was enqueued: the time is its own
  replayed,  ///< one launch of a recorded graph
};
const char* to_string(Launches);  ///< "included", ...; "" for none

/// The sums over ranks that a backward pass began, as one rank sees them; none: it is not known.
struct SumsOverRanks {
  double bytes = 0, seconds = 0;  ///< how long one or more were under way
  double hidden_seconds = 0;      ///< of these, while the pass computed
};

/// One timed piece of work.
struct Sample {
  double seconds = 0;
  double cpu_seconds = 0;  ///< of all threads of the process meanwhile
  Launches launches = Launches::none;
  DeviceState state{};                              ///< of the device, read when the work had ended
  double peak_flops_per_second = 0, clock_mhz = 0;  ///< of the processor's units beside it; 0: not measured
  SumsOverRanks sums{};
};

double mean(const std::vector<double>&);
double deviation(const std::vector<double>&);  ///< with n - 1; 0 for fewer than two

std::vector<double> seconds_of(std::span<const Sample>);
std::vector<double> cpu_seconds_of(std::span<const Sample>);

/// What all samples have in common; where they differ, the launches are included in some, and so said to be.
Launches launches_of(std::span<const Sample>);
/// Everything that held the clock down in any of them, each once: "power cap, thermal slowdown".
std::string throttled_of(std::span<const Sample>);

}  // namespace lamina::bench
