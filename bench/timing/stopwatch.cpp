// Timing work on a device.

#include "stopwatch.h"

#include <ctime>

namespace lamina::bench {
namespace {

Launches as_enqueued(const Device& device) { return device.longest_hold() > 0 ? Launches::included : Launches::none; }

}  // namespace

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
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
    if (!forward && again) plan_->forward();  // each backward() wants one before it
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
