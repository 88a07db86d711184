// The energy of passes.

#include "energy.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "backends.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

/// What `text` gives, or why there is no energy.
template <class Text>
std::string or_reason(Text&& text) {
  try {
    return text();
  } catch (const Error& error) {
    return fmt::format("not available: {}", error.what());
  }
}

}  // namespace

std::unique_ptr<EnergyCounter> energy_counter(const std::string& backend) {
  return runs_on_gpu(backend) ? gpu_energy() : processor_energy();
}

PassEnergy energy_of(const std::string& backend, const std::function<void()>& pass) {
  try {
    const EnergyUsed used = measure_energy(*energy_counter(backend), pass);
    return {used.joules_per_run(), used.seconds};
  } catch (const Error& error) {
    return {0, 0, error.what()};
  }
}

std::string idle_power_text(const std::string& backend) {
  return or_reason([&] {
    const auto idle = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1000)); };
    return fmt::format("{:.1f}", measure_energy(*energy_counter(backend), idle).watts());
  });
}

std::string energy_text(const std::string& backend) {
  return or_reason([&] { return energy_counter(backend)->describe(); });
}

}  // namespace lamina::bench
