// What is measured, and what becomes of many of them.

#include "samples.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

namespace lamina::bench {

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

std::vector<double> seconds_of(std::span<const Sample> samples) {
  std::vector<double> seconds;
  for (const Sample& sample : samples) seconds.push_back(sample.seconds);
  return seconds;
}

std::vector<double> cpu_seconds_of(std::span<const Sample> samples) {
  std::vector<double> seconds;
  for (const Sample& sample : samples) seconds.push_back(sample.cpu_seconds);
  return seconds;
}

const char* to_string(Launches launches) {
  switch (launches) {
    case Launches::none: return "";
    case Launches::included: return "included";
    case Launches::hidden: return "hidden";
    case Launches::replayed: return "replayed";
  }
  return "";
}

Launches launches_of(std::span<const Sample> samples) {
  if (samples.empty()) return Launches::none;
  const Launches first = samples.front().launches;
  const bool same =
      std::all_of(samples.begin(), samples.end(), [&](const Sample& sample) { return sample.launches == first; });
  return same ? first : Launches::included;
}

std::string throttled_of(std::span<const Sample> samples) {
  constexpr std::string_view comma = ", ";
  std::vector<std::string_view> reasons;
  for (const Sample& sample : samples)
    for (std::string_view rest = sample.state.throttled; !rest.empty();) {
      const std::string_view reason = rest.substr(0, rest.find(comma));
      if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) reasons.push_back(reason);
      rest.remove_prefix(std::min(rest.size(), reason.size() + comma.size()));
    }
  std::string text;
  for (const std::string_view reason : reasons) text += (text.empty() ? "" : std::string(comma)) + std::string(reason);
  return text;
}

}  // namespace lamina::bench
