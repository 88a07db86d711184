#pragma once
// The energy of work on a backend's device, and what the device takes when it is idle.

#include <functional>
#include <memory>
#include <string>

#include "lamina/energy.h"

namespace lamina::bench {

/// The counter of the device of a backend. Throws Unsupported with the reason.
std::unique_ptr<EnergyCounter> energy_counter(const std::string& backend);

/// How counters are made: energy_counter, or what a test has in its place.
using MakeEnergyCounter = std::function<std::unique_ptr<EnergyCounter>(const std::string& backend)>;

/// Joules, or why there are none.
struct MeasuredEnergy {
  double joules = 0, window_seconds = 0;  ///< the window in which the counter was read
  std::string missing{};                  ///< why there are none; then joules are 0
};

/// The energy of a pass, as the mean over a window of a second or more.
MeasuredEnergy energy_of(const std::string& backend, const std::function<void()>& pass);

/// The energy of a long run and of its parts, one after another, as the epochs of a training.
class EnergyMeter {
 public:
  /// What `make` throws is why there are no joules. `now`: seconds of a clock; empty: the system's.
  EnergyMeter(const std::string& backend, const MakeEnergyCounter& make, std::function<double()> now = {});

  void begin();  ///< the run, and its first part
  /// Reads the counter, at most once a second, so that a wrap-around is not missed while batches run.
  void look();
  /// Since begin() or the end of the part before. A part of less than a second has no joules.
  MeasuredEnergy end_part();
  MeasuredEnergy whole();        ///< since begin(); as of a part
  std::string describe() const;  ///< what counts, or "not available: why"

 private:
  struct Reading {
    double joules = 0, seconds = 0;
  };
  Reading read();
  MeasuredEnergy between(const Reading& from, const Reading& to) const;

  std::unique_ptr<EnergyCounter> counter_;
  std::function<double()> now_;
  std::string missing_;  ///< why nothing is counted any more; empty: it is
  Reading begin_{}, part_{}, last_{};
};

/// The power of the device in an idle second: "12.3", or "not available: why".
std::string idle_power_text(const std::string& backend, const MakeEnergyCounter& make = energy_counter);
/// What counts its energy, or "not available: why".
std::string energy_text(const std::string& backend, const MakeEnergyCounter& make = energy_counter);

}  // namespace lamina::bench
