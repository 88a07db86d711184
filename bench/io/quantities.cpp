// Bytes and seconds, as people write and read them.

#include "quantities.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "lamina/error.h"

namespace lamina::bench {
namespace {

/// The factor of a unit, or 0 for what is none.
double factor_of(std::string_view unit) {
  if (unit.empty() || unit == "B") return 1;
  if (unit.back() != 'B') return 0;
  const bool binary = unit.size() == 3 && unit[1] == 'i';
  if (unit.size() != (binary ? 3U : 2U)) return 0;
  constexpr std::string_view steps = "KMGT";
  std::size_t step = steps.find(unit.front() == 'k' ? 'K' : unit.front());
  if (step == std::string_view::npos) return 0;
  return std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(step + 1));
}

}  // namespace

std::size_t parse_bytes(std::string_view text) {
  const std::string wanted(text);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  const double bytes = number * factor_of(text);
  if (error != std::errc() || !(bytes >= 1) || bytes >= static_cast<double>(std::numeric_limits<std::size_t>::max()))
    throw UsageError(fmt::format("\"{}\" is no number of bytes; give one like 4GiB, 500MB or 1048576", wanted));
  return static_cast<std::size_t>(bytes);
}

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
