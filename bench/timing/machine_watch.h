#pragma once
// The state of the machine during timing: the load of other programs, and clock and temperature of the processors if
// the system shows them. The clock of one core, measured by additions. The grade of a row, A to D: how far it can be
// trusted, by its samples and by the state of the machine. docs/measuring.md has the table of grades.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stopwatch.h"

namespace lamina::bench {

/// The clock of the core that the caller runs on, in cycles per second. It is measured by dependent additions, which
/// take a cycle each. It is the best of several runs, which take less than a millisecond together.
double core_clock();

/// The worst readings during a measurement. A reading that failed is empty.
struct Conditions {
  std::optional<double> others{};  ///< share of all processors' time that other programs and the hypervisor took
  std::optional<double> clock_low_mhz{}, clock_high_mhz{};  ///< lowest and highest reading
  std::optional<double> hottest_c{}, limit_c{};             ///< highest temperature, and the part's limit, in Celsius
  std::string throttled{};                                  ///< causes of throttling of a GPU's clock
};

std::string first_line(const std::filesystem::path&);  ///< the first line of a file; empty if it cannot be read

/// The present clock of the fastest processor, and the highest temperature of the processors with its limit. `root`:
/// the folder that has proc and sys.
std::optional<double> processor_mhz(const std::filesystem::path& root = "/");
struct Temperature {
  double celsius = 0;
  std::optional<double> limit{};
};
std::optional<Temperature> processor_temperature(const std::filesystem::path& root = "/");

/// Reads the state of the machine between timed passes, at most once per window. The load is the mean over the window.
class MachineWatch {
 public:
  /// The sources of readings: the folder of proc and sys, the time in seconds, the processor time of this process.
  struct Sources {
    std::filesystem::path root = "/";
    std::function<double()> now = steady_seconds, own_seconds = cpu_seconds;
  };

  MachineWatch() : MachineWatch(Sources{}) {}
  explicit MachineWatch(Sources, double window_seconds = 0.5);

  void begin();  ///< call it before other work: forgets the worst readings, but keeps the load of the last window
  void look();   ///< call it between passes; reads only after a window or, if no load is known yet, a fifth of a window
  const Conditions& conditions() const { return worst_; }

 private:
  /// The time of all processors since the system started.
  struct Ticks {
    double busy = 0, all = 0;
  };
  std::optional<Ticks> ticks() const;
  void read_load();
  void read_sensors();

  Sources sources_;
  double window_, since_ = 0, own_ = 0;
  std::optional<Ticks> ticks_;
  std::optional<double> last_others_;
  Conditions worst_;
};

struct Grade {
  char letter = 'A';
  std::vector<std::string> reasons{};  ///< reasons for a grade below A, and readings that failed
};

/// The grade of a row that has a sample: the worst of its marks. A reading that failed gives no mark, but a load that
/// is not known gives B.
Grade grade(const std::vector<double>& seconds, const Conditions&);

/// The conditions `c`, with the clock and temperature of the device in place of the processor's, if the samples have
/// them.
Conditions conditions_of(const std::vector<Sample>&, Conditions);

}  // namespace lamina::bench
