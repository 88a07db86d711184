// Learning rates over time.

#include <cmath>
#include <numbers>
#include <utility>

#include "lamina/error.h"
#include "lamina/optimiser.h"

namespace lamina {

Schedule constant_rate(double rate) {
  return [rate](std::uint64_t) { return rate; };
}

Schedule inverse_time(double rate, double decay) {
  return [rate, decay](std::uint64_t updates) { return rate / (1 + decay * static_cast<double>(updates)); };
}

Schedule step_decay(double rate, double factor, std::uint64_t every) {
  if (every < 1) throw UsageError("step_decay: every is 0; it should be at least 1");
  return [rate, factor, every](std::uint64_t updates) {
    return rate * std::pow(factor, static_cast<double>(updates / every));
  };
}

Schedule cosine(double rate, double last, std::uint64_t over) {
  return [rate, last, over](std::uint64_t updates) {
    if (updates >= over) return last;
    const double turned = std::numbers::pi * static_cast<double>(updates) / static_cast<double>(over);
    return last + (rate - last) * (1 + std::cos(turned)) / 2;
  };
}

Schedule warm_up(std::uint64_t over, Schedule then) {
  if (!then) throw UsageError("warm_up: then is empty; give a schedule, as constant_rate(0.001)");
  return [over, then = std::move(then)](std::uint64_t updates) {
    const double rate = then(updates);
    return updates >= over ? rate : rate * static_cast<double>(updates + 1) / static_cast<double>(over + 1);
  };
}

}  // namespace lamina
