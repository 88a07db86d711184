#pragma once
// Counters of the energy that a processor or a GPU has used.

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "lamina/api.h"

namespace lamina {

/// Energy since some moment, in joules. It is updated some ten to a thousand times a second: differences are good for
/// windows of a second and more.
class LAMINA_API EnergyCounter {
 public:
  virtual ~EnergyCounter() = default;
  virtual std::string describe() const = 0;  ///< "RAPL package-0, package-1"
  virtual double joules() = 0;               ///< now; throws DeviceError if it cannot be read
};

/// Counts all packages of the processor, by RAPL. Wrap-arounds of its numbers are corrected if it is read once
/// in each (about a minute under full load). `root`: the folder of the system's power zones. Throws Unsupported with
/// the reason: no such folder, as on most virtual machines, or no right to read.
LAMINA_API std::unique_ptr<EnergyCounter> processor_energy(const std::filesystem::path& root = "/sys/class/powercap");

/// Counts a GPU's energy, by NVIDIA's management library (Volta and later). Throws Unsupported with the reason.
LAMINA_API std::unique_ptr<EnergyCounter> gpu_energy(int number = 0);

/// The energy and time of a window of repeated work.
struct EnergyUsed {
  double joules = 0, seconds = 0;
  int runs = 0;
  double joules_per_run() const { return joules / runs; }
  double watts() const { return joules / seconds; }
};

/// Runs the work again and again for at least so many seconds, and reads the counter before and after. `work` waits for
/// its end. `now`: seconds of a clock; empty: the system's. Throws Unsupported if the counter stood still or went back.
LAMINA_API EnergyUsed measure_energy(EnergyCounter&, const std::function<void()>& work, double least_seconds = 1,
                                     const std::function<double()>& now = {});

}  // namespace lamina
