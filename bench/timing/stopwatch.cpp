// Timing of work on a device, and facts about many samples.

#include "stopwatch.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <numeric>
#include <ranges>
#include <string_view>

namespace lamina::bench {
namespace {

Launches as_enqueued(const Device& device) { return device.longest_hold() > 0 ? Launches::included : Launches::none; }

}  // namespace

double mean(const std::vector<double>& x) {
  if (x.empty()) return 0;
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

double deviation(const std::vector<double>& x) {
  if (x.size() < 2) return 0;
  const double centre = mean(x);
  double sum = 0;
  for (const double value : x) sum += (value - centre) * (value - centre);
  return std::sqrt(sum / static_cast<double>(x.size() - 1));
}

std::vector<double> seconds_of(std::span<const Sample> samples, double Sample::*which) {
  std::vector<double> seconds;
  for (const Sample& sample : samples) seconds.push_back(sample.*which);
  return seconds;
}

std::map<std::string, double> readings_of(const DeviceState& state) {
  std::map<std::string, double> readings;
  for (const auto& [name, value] : {std::pair("sm_mhz", state.sm_mhz), std::pair("temperature_c", state.temperature_c),
                                    std::pair("power_w", state.power_w)})
    if (value) readings[name] = *value;
  return readings;
}

const char* to_string(Launches launches) {
  constexpr const char* names[] = {"", "included", "hidden", "replayed"};
  return names[static_cast<std::size_t>(launches)];
}

Launches launches_of(std::span<const Sample> samples) {
  if (samples.empty()) return Launches::none;
  const Launches first = samples.front().launches;
  const auto is_other = [&](const Sample& sample) { return sample.launches != first; };
  return std::ranges::any_of(samples, is_other) ? Launches::included : first;
}

std::string throttled_of(std::span<const Sample> samples) {
  constexpr std::string_view comma = ", ";
  std::vector<std::string_view> reasons;
  for (const Sample& sample : samples)
    for (const auto part : std::views::split(sample.state.throttled, comma))
      if (const std::string_view reason(part.begin(), part.end()); std::ranges::find(reasons, reason) == reasons.end())
        reasons.push_back(reason);
  return fmt::format("{}", fmt::join(reasons, comma));
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Stopwatch::Stopwatch(Device& device) : device_(&device), timer_(device.timer()) {}

Sample Stopwatch::time(const std::function<void()>& work) {
  device_->synchronize();
  const double cpu_start = cpu_seconds();
  timer_->start();
  work();
  timer_->stop();
  const double seconds = timer_->seconds();
  return {seconds, cpu_seconds() - cpu_start, as_enqueued(*device_), device_->state()};
}

CallStopwatch::CallStopwatch(Plan& plan, bool hide, bool cold) : plan_(&plan) {
  if (cold) other_ = Buffer(plan.backend().device(), twice_a_cache);
  if (hide) held_.emplace(plan.backend().device());
  for (std::size_t i = 0; i < plan.calls().size(); ++i) timers_.push_back(plan.backend().device().timer());
}

void CallStopwatch::empty_caches() {
  if (other_.size_bytes() == 0) return;
  const double start = cpu_seconds();
  plan_->backend().device().fill(other_.data(), 0, other_.size_bytes());
  emptied_seconds_ += cpu_seconds() - start;
}

std::vector<double> CallStopwatch::run(std::size_t first, std::size_t end, bool forward) {
  const auto stamp = [&](std::size_t call) {
    if (call > first) timers_[call - 1]->stop();
    if (call < end) timers_[call]->start();
  };
  bool again = false;
  const auto enqueue = [&] {
    if (!forward && again) plan_->forward();  // backward() needs a forward() before it, each time
    again = true;
    empty_caches();
    forward ? plan_->forward(stamp) : plan_->backward(stamp);
  };
  Device& device = plan_->backend().device();
  device.synchronize();
  launches_ = as_enqueued(device);
  if (!held_ || first == end)
    enqueue();
  else if (held_->run(*timers_[first], enqueue))
    launches_ = Launches::hidden;
  std::vector<double> seconds;
  for (std::size_t i = first; i < end; ++i) seconds.push_back(timers_[i]->seconds());
  return seconds;
}

std::vector<double> CallStopwatch::forward() { return run(0, plan_->forward_calls(), true); }
std::vector<double> CallStopwatch::backward() { return run(plan_->forward_calls(), timers_.size(), false); }

Sample CallStopwatch::pass(Pass pass) {
  const bool is_backward = pass != Pass::forward;
  if (is_backward) plan_->forward();
  emptied_seconds_ = 0;
  const double cpu_start = cpu_seconds();
  const std::vector<double> seconds = is_backward ? backward() : forward();
  Sample sample{0, cpu_seconds() - cpu_start - emptied_seconds_, launches(), plan_->backend().device().state()};
  const std::size_t first = is_backward ? plan_->forward_calls() : 0;
  for (std::size_t i = 0; i < seconds.size(); ++i)
    if (plan_->calls()[first + i].covers(pass)) sample.seconds += seconds[i];
  return sample;
}

}  // namespace lamina::bench
