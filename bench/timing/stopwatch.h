#pragma once
// Timing work on a device by its own timer, with the processor's time beside it; common facts of many samples.

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
  double bytes = 0, seconds = 0;  ///< bytes, and the time while any sum was under way
  double hidden_seconds = 0;      ///< part of this time while the pass computed
};

/// A timed piece of work.
struct Sample {
  double seconds = 0;
  double cpu_seconds = 0;  ///< processor time of all threads of the process meanwhile
  Launches launches = Launches::none;
  DeviceState state{};                              ///< state of the device, read after the work
  double peak_flops_per_second = 0, clock_mhz = 0;  ///< rate and clock of the processor beside it; 0: not measured
  SumsOverRanks sums{};
};

double mean(const std::vector<double>&);
double deviation(const std::vector<double>&);  ///< standard deviation with n - 1; 0 for fewer than two

std::vector<double> seconds_of(std::span<const Sample>, double Sample::*which = &Sample::seconds);

/// The readings that the device gave of "sm_mhz", "temperature_c" and "power_w".
std::map<std::string, double> readings_of(const DeviceState&);

/// The facts that all samples share. If they differ about the launches, these count as included.
Launches launches_of(std::span<const Sample>);
/// All causes that held the clock down in any sample, each once: "power cap, thermal slowdown".
std::string throttled_of(std::span<const Sample>);

/// Seconds of processor time of all threads of this process so far.
double cpu_seconds();
/// Seconds of std::chrono::steady_clock.
double steady_seconds();

/// Times one piece of work on a device that is idle before and after it, as a user sees it: the launches are included.
class Stopwatch {
 public:
  explicit Stopwatch(Device&);
  Sample time(const std::function<void()>& work);

 private:
  Device* device_;
  std::unique_ptr<Timer> timer_;
};

/// Times every call of a plan's pass separately, on timers made beforehand.
class CallStopwatch {
 public:
  /// With `hide`, launches are hidden where the device has a queue and the calls are few enough. With `cold`, the
  /// device's caches are emptied before each half of a pass.
  explicit CallStopwatch(Plan&, bool hide = false, bool cold = false);
  std::vector<double> forward();   ///< seconds of each of forward's calls, in order
  std::vector<double> backward();  ///< seconds of each of backward's calls
  /// One pass: its calls' seconds, and the processor's time of the whole half of the plan. Before a backward pass comes
  /// a forward, untimed.
  Sample pass(Pass);
  Launches launches() const { return launches_; }  ///< launches of the last pass

 private:
  std::vector<double> run(std::size_t first, std::size_t end, bool forward);
  void empty_caches();

  Plan* plan_;
  Buffer other_;                                ///< memory whose filling empties the caches; none: they are left alone
  double emptied_seconds_ = 0;                  ///< processor time of emptying
  std::vector<std::unique_ptr<Timer>> timers_;  ///< one per call of the plan
  std::optional<HeldLaunches> held_;
  Launches launches_ = Launches::none;
};

/// A span of std::chrono::steady_clock, in seconds.
struct Span {
  std::string what;
  double begin, end;
  bool is_sum = false;
};

/// A plan that is timed pass by pass, alive while its rows run.
class TimedRun {
 public:
  virtual ~TimedRun() = default;
  virtual std::vector<Sample> pass() = 0;  ///< runs one pass; gives a sample for each part
  virtual const Plan& plan() const = 0;
  virtual std::vector<double> bytes() const { return {}; }  ///< bytes by part, if the plan's calls have them
  /// Counters, which replace others of the same name.
  virtual std::map<std::string, double> counters() const { return {}; }
  virtual std::vector<Span> spans() const { return {}; }  ///< spans of this rank's last timed pass of a network
  virtual std::string note() const { return {}; }         ///< text about the rows
  virtual std::string algorithm() const { return {}; }    ///< algorithm that was taken, if there is one
};

}  // namespace lamina::bench
