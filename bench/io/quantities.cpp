// Bytes and seconds, as people read them.

#include "quantities.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace lamina::bench {

std::string bytes_text(double bytes) {
  constexpr std::array units = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{:.0f} B", bytes);
  std::size_t unit = 0;
  for (bytes /= 1024; bytes >= 1023.995 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.2f} {}", bytes, units[unit]);
}

std::string seconds_text(double seconds) {
  const auto whole = static_cast<long long>(std::ceil(seconds));
  if (whole >= 3600) return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
  if (whole >= 60) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} s", whole);
}

}  // namespace lamina::bench
