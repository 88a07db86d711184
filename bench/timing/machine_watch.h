#pragma once
// The state of the machine while something was timed: the load of other programs, clock and temperature of the
// processors, as far as the system lets us read them; and the clock of this core, as far as additions show it.
// How far a row can be trusted: A to D, by its samples and by what the machine did meanwhile. docs/measuring.md has the
// table.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stopwatch.h"

namespace lamina::bench {

/// Cycles per second of the core that the caller runs on: additions that wait for each other take a cycle each. The
/// best of several runs in less than a millisecond.
double core_clock();

/// The worst readings. Readings that failed are empty.
struct Conditions {
  std::optional<double> others{};  ///< share of all processors' time that other programs and the hypervisor took
  std::optional<double> clock_low_mhz{}, clock_high_mhz{};  ///< lowest and highest reading
  std::optional<double> hottest_c{}, limit_c{};             ///< highest temperature, and the limit of the part
  std::string throttled{};                                  ///< causes that held the clock of a GPU down
};

std::string first_line(const std::filesystem::path&);  ///< empty: there is no such file, or no right to read it

/// Clock of the fastest processor now, and the highest temperature of the processors with their limit. `root` is the
/// folder of proc and sys.
std::optional<double> processor_mhz(const std::filesystem::path& root = "/");
struct Temperature {
  double celsius = 0;
  std::optional<double> limit{};
};
std::optional<Temperature> processor_temperature(const std::filesystem::path& root = "/");

/// Looks at the machine between timed passes, at most once per window. A reading is the mean over the window.
class MachineWatch {
 public:
  /// Where the watch reads, and its clocks: seconds now, and processor seconds of this process so far.
  struct Sources {
    std::filesystem::path root = "/";
    std::function<double()> now = steady_seconds, own_seconds = cpu_seconds;
  };

  MachineWatch() : MachineWatch(Sources{}) {}
  explicit MachineWatch(Sources, double window_seconds = 0.5);

  void begin();  ///< begins other work: forgets the worst readings, but keeps the last window's load
  void look();   ///< called between passes; idle within a window, or a fifth of it while no load is known
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
  std::vector<std::string> reasons{};  ///< reasons against A, and readings that failed
};

/// The grade of a row that has a sample: the worst of its marks. A reading that failed gives no mark, except the load:
/// without it there is no A.
Grade grade(const std::vector<double>& seconds, const Conditions&);

/// The conditions of samples of a device that reports its own clock and temperature, in place of the processor's.
Conditions conditions_of(const std::vector<Sample>&, Conditions);

}  // namespace lamina::bench
