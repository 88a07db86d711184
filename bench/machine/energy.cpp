// The energy of passes, and of the parts of a run.

#include "energy.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

#include "backends.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

constexpr double least_seconds = 1;  // of a window: the counters are updated ten to a thousand times a second

std::string not_available(const std::string& why) { return "not available: " + why; }

/// What `text` gives, or why there is no energy.
template <class Text>
std::string or_reason(Text&& text) {
  try {
    return text();
  } catch (const Error& error) {
    return not_available(error.what());
  }
}

double system_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::unique_ptr<EnergyCounter> energy_counter(const std::string& backend) {
  return runs_on_gpu(backend) ? gpu_energy() : processor_energy();
}

MeasuredEnergy energy_of(const std::string& backend, const std::function<void()>& pass) {
  try {
    const EnergyUsed used = measure_energy(*energy_counter(backend), pass, least_seconds);
    return {used.joules_per_run(), used.seconds};
  } catch (const Error& error) {
    return {0, 0, error.what()};
  }
}

EnergyMeter::EnergyMeter(const std::string& backend, const MakeEnergyCounter& make, std::function<double()> now)
    : now_(now ? std::move(now) : system_seconds) {
  try {
    counter_ = make(backend);
  } catch (const Error& error) {
    missing_ = error.what();
  }
}

EnergyMeter::Reading EnergyMeter::read() {
  last_.seconds = now_();
  if (!missing_.empty()) return last_;
  try {
    last_.joules = counter_->joules();
  } catch (const Error& error) {
    missing_ = error.what();
  }
  return last_;
}

void EnergyMeter::begin() { begin_ = part_ = read(); }

void EnergyMeter::look() {
  if (now_() - last_.seconds >= least_seconds) read();
}

MeasuredEnergy EnergyMeter::between(const Reading& from, const Reading& to) const {
  MeasuredEnergy its{to.joules - from.joules, to.seconds - from.seconds, missing_};
  if (its.missing.empty() && its.window_seconds < least_seconds)
    its.missing = fmt::format("energy: it took {:.2g} s, and the counter is for windows of {:g} s and more",
                              its.window_seconds, least_seconds);
  else if (its.missing.empty() && its.joules <= 0)
    its.missing =
        fmt::format("energy: the counter {} ({})", its.joules < 0 ? "went back" : "stood still", counter_->describe());
  if (!its.missing.empty()) its.joules = 0;
  return its;
}

MeasuredEnergy EnergyMeter::end_part() {
  const Reading from = std::exchange(part_, read());
  return between(from, part_);
}

MeasuredEnergy EnergyMeter::whole() { return between(begin_, read()); }

std::string EnergyMeter::describe() const { return missing_.empty() ? counter_->describe() : not_available(missing_); }

std::string idle_power_text(const std::string& backend, const MakeEnergyCounter& make) {
  return or_reason([&] {
    const auto idle = [] { std::this_thread::sleep_for(std::chrono::milliseconds(1000)); };
    return fmt::format("{:.1f}", measure_energy(*make(backend), idle, least_seconds).watts());
  });
}

std::string energy_text(const std::string& backend, const MakeEnergyCounter& make) {
  return or_reason([&] { return make(backend)->describe(); });
}

}  // namespace lamina::bench
