// Marks by number of samples, spread, load, clock and temperature.

#include "grade.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "lamina/statistics.h"

namespace lamina::bench {
namespace {

/// The worst values that still give A, B and C.
struct Scale {
  std::array<double, 3> worst;
};
constexpr Scale samples_scale{{9, 6, 3}};         // at least: the others are at most
constexpr Scale spread_scale{{0.01, 0.03, 0.1}};  // half of the median's interval, of the median
constexpr Scale load_scale{{0.05, 0.15, 0.4}};    // of all processors, by others
constexpr Scale clock_scale{{0.02, 0.05, 0.15}};  // lost between the highest and the lowest
constexpr Scale heat_scale{{-10, -5, 0}};         // degrees above the limit

char mark(const Scale& scale, double value) {
  for (std::size_t i = 0; i < scale.worst.size(); ++i)
    if (value <= scale.worst[i]) return static_cast<char>('A' + i);
  return 'D';
}

char mark_of_count(double samples) {
  for (std::size_t i = 0; i < samples_scale.worst.size(); ++i)
    if (samples >= samples_scale.worst[i]) return static_cast<char>('A' + i);
  return 'D';
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

}  // namespace

Grade grade(const std::vector<double>& seconds, const Conditions& c) {
  Grade all;
  const auto add = [&](char letter, const std::string& reason) {
    if (letter > 'A') all.reasons.push_back(fmt::format("{}: {}", letter, reason));
    all.letter = std::max(all.letter, letter);
  };
  const Interval median = median_interval(seconds);
  const double spread = median.middle > 0 ? (median.high - median.low) / 2 / median.middle : 1;
  add(mark_of_count(static_cast<double>(seconds.size())),
      fmt::format("{} sample{}", seconds.size(), seconds.size() == 1 ? "" : "s"));
  add(mark(spread_scale, spread), fmt::format("median known to {}", percent(spread)));
  if (c.others)
    add(mark(load_scale, *c.others), fmt::format("other programs took {} of the processors", percent(*c.others)));
  else
    add('B', "the load of other programs is not known");
  std::vector<std::string> unknown;
  if (c.clock_low_mhz && c.clock_high_mhz && *c.clock_high_mhz > 0)
    add(mark(clock_scale, 1 - *c.clock_low_mhz / *c.clock_high_mhz),
        fmt::format("clock between {:.0f} and {:.0f} MHz", *c.clock_low_mhz, *c.clock_high_mhz));
  else
    unknown.emplace_back("clock");
  if (!c.hottest_c)
    unknown.emplace_back("temperature");
  else if (c.limit_c)
    add(mark(heat_scale, *c.hottest_c - *c.limit_c),
        fmt::format("{:.0f} of at most {:.0f} degrees Celsius", *c.hottest_c, *c.limit_c));
  if (!c.throttled.empty()) add('C', "clock held down: " + c.throttled);
  if (!unknown.empty()) all.reasons.push_back(fmt::format("not readable: {}", fmt::join(unknown, ", ")));
  return all;
}

Conditions conditions_of(const std::vector<Sample>& samples, Conditions c) {
  const bool reports = std::any_of(samples.begin(), samples.end(), [](const Sample& sample) {
    return sample.state.sm_mhz || sample.state.temperature_c || !sample.state.missing.empty();
  });
  c.throttled = throttled_of(samples);
  if (!reports) return c;
  c.clock_low_mhz = c.clock_high_mhz = c.hottest_c = c.limit_c = std::nullopt;
  for (const Sample& sample : samples) {
    if (const auto mhz = sample.state.sm_mhz) {
      c.clock_low_mhz = std::min(c.clock_low_mhz.value_or(*mhz), *mhz);
      c.clock_high_mhz = std::max(c.clock_high_mhz.value_or(*mhz), *mhz);
    }
    if (const auto degrees = sample.state.temperature_c)
      c.hottest_c = std::max(c.hottest_c.value_or(*degrees), *degrees);
  }
  return c;
}

}  // namespace lamina::bench
