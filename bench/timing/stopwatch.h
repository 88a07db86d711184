#pragma once
// Timing of work on a device by the device's own timer, with the processor time. Facts about many samples.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lamina/device.h"
#include "lamina/plan.h"
#include "lamina/timing.h"

namespace lamina::bench {

/// How a time treats the host's launches.
enum class Launches : std::uint8_t {
  none,      ///< not applicable: the work runs while it is enqueued, as on a processor
  included,  ///< the device was idle at the start, and waited for the host's launches, as in ordinary use
  hidden,    ///< the device began only when all work was enqueued, so the time has no launches
  replayed,  ///< a recorded graph was launched once
};
const char* to_string(Launches);  ///< "included", ...; "" for none

/// The all-reduces that a backward pass began, as one rank sees them. Zeros: not known.
struct SumsOverRanks {
  double bytes = 0, seconds = 0;  ///< bytes, and the time during which any all-reduce ran
  double hidden_seconds = 0;      ///< part of this time during which backward still computed
};

/// A timed piece of work.
struct Sample {
  double seconds = 0;
  double cpu_seconds = 0;  ///< processor time of all threads of the process during the work
  Launches launches = Launches::none;
  DeviceState state{};                              ///< state of the device, read after the work
  double peak_flops_per_second = 0, clock_mhz = 0;  ///< peak and clock of the processor near the work; 0: not measured
  SumsOverRanks sums{};
};

double mean(const std::vector<double>&);
double deviation(const std::vector<double>&);  ///< standard deviation with n - 1; 0 for fewer than two

std::vector<double> seconds_of(std::span<const Sample>, double Sample::*which = &Sample::seconds);

/// The readings of the device: "sm_mhz", "temperature_c" and "power_w", as far as it gave them.
std::map<std::string, double> readings_of(const DeviceState&);

/// The launches of all samples. If the samples differ: `included`.
Launches launches_of(std::span<const Sample>);
/// All causes of throttling in any sample, each once: "power cap, thermal slowdown".
std::string throttled_of(std::span<const Sample>);

/// The processor time of all threads of this process so far, in seconds.
double cpu_seconds();
/// The time of std::chrono::steady_clock, in seconds.
double steady_seconds();

/// Times one piece of work on a device that is idle before and after. The time includes the launches, as a user sees
/// it.
class Stopwatch {
 public:
  explicit Stopwatch(Device&);
  Sample time(const std::function<void()>& work);

 private:
  Device* device_;
  std::unique_ptr<Timer> timer_;
};

/// Times every call of a plan's pass separately, with timers that are made beforehand.
class CallStopwatch {
 public:
  /// `hide`: hides launches if the device has a queue and the calls are few enough. `cold`: empties the device's caches
  /// before forward, and before backward.
  explicit CallStopwatch(Plan&, bool hide = false, bool cold = false);
  std::vector<double> forward();   ///< seconds of each call of forward, in order
  std::vector<double> backward();  ///< seconds of each call of backward, in order
  /// Times one pass: the sum of the calls that make it, and the processor time of whole forward or backward. Runs an
  /// untimed forward before a backward pass.
  Sample pass(Pass);
  Launches launches() const { return launches_; }  ///< launches of the last pass

 private:
  std::vector<double> run(std::size_t first, std::size_t end, bool forward);
  void empty_caches();

  Plan* plan_;
  Buffer other_;                                ///< memory that is filled to empty the caches; none: caches stay warm
  double emptied_seconds_ = 0;                  ///< processor time of emptying
  std::vector<std::unique_ptr<Timer>> timers_;  ///< a timer for each call of the plan
  std::optional<HeldLaunches> held_;
  Launches launches_ = Launches::none;
};

/// A span of time, in seconds of std::chrono::steady_clock.
struct Span {
  std::string what;
  double begin, end;
  bool is_sum = false;
};

/// A plan that is timed pass by pass. It lives while its rows run.
class TimedRun {
 public:
  virtual ~TimedRun() = default;
  virtual std::vector<Sample> pass() = 0;  ///< runs one pass; gives a sample for each part
  virtual const Plan& plan() const = 0;
  virtual std::vector<double> bytes() const { return {}; }  ///< bytes of the plan's calls by part; empty: not known
  /// Counters of the rows. A counter replaces another counter of the same name.
  virtual std::map<std::string, double> counters() const { return {}; }
  virtual std::vector<Span> spans() const { return {}; }  ///< spans of this rank's last timed pass of a network
  virtual std::string note() const { return {}; }         ///< text about the rows
  virtual std::string algorithm() const { return {}; }    ///< algorithm of the layer's pass; empty: a whole network
};

}  // namespace lamina::bench
