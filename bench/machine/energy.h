#pragma once
// The energy of a pass on a backend's device, and what the device takes when it is idle.

#include <functional>
#include <memory>
#include <string>

#include "lamina/energy.h"

namespace lamina::bench {

/// Of the device of a backend. Throws Unsupported with the reason.
std::unique_ptr<EnergyCounter> energy_counter(const std::string& backend);

/// Joules of a pass, as the mean over a window of a second or more.
struct PassEnergy {
  double joules = 0, window_seconds = 0;
  std::string missing{};  ///< why there are none; then both are 0
};
PassEnergy energy_of(const std::string& backend, const std::function<void()>& pass);

/// Of the device in an idle second: "12.3", or "not available: why".
std::string idle_power_text(const std::string& backend);
/// What counts its energy, or "not available: why".
std::string energy_text(const std::string& backend);

}  // namespace lamina::bench
