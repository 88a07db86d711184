// The parts of the error classes that are not in their header. Similar names: edit distance, and a clause with the
// nearest names.

#include "lamina/error.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace lamina {

OutOfMemory::OutOfMemory(std::size_t wanted_bytes, std::size_t free_bytes, const std::string& reason)
    : DeviceError("out of memory: " + std::to_string(wanted_bytes) + " bytes wanted, " + std::to_string(free_bytes) +
                  " bytes free" + reason),
      wanted_bytes_(wanted_bytes),
      free_bytes_(free_bytes) {}

OutOfMemory::OutOfMemory(const std::string& message) : DeviceError(message) {}

Error::~Error() = default;
ShapeError::~ShapeError() = default;
Unsupported::~Unsupported() = default;
DeviceError::~DeviceError() = default;
OutOfMemory::~OutOfMemory() = default;
LoadError::~LoadError() = default;
FileError::~FileError() = default;
UsageError::~UsageError() = default;

namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return result;
}

std::string named(const std::string& name) { return '"' + name + '"'; }

std::string known_names(const std::vector<std::string>& known) {
  constexpr std::size_t shown_at_most = 12;
  if (known.empty()) return "there are none";
  std::string text = "valid names: ";
  const std::size_t shown = std::min(known.size(), shown_at_most);
  for (std::size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + named(known[i]);
  if (shown < known.size()) text += " and " + std::to_string(known.size() - shown) + " more";
  return text;
}

}  // namespace

std::size_t edit_distance(std::string_view pattern, std::string_view text, Match match) {
  std::vector<std::size_t> column(pattern.size() + 1);  // distances of the first i characters of the pattern
  std::iota(column.begin(), column.end(), std::size_t{0});
  std::size_t best = column.back();
  for (const char c : text) {
    std::size_t diagonal = column[0];
    if (match == Match::whole) ++column[0];  // a match of a part may start anywhere
    for (std::size_t i = 1; i <= pattern.size(); ++i) {
      const std::size_t changed = diagonal + (pattern[i - 1] == c ? 0 : 1);
      diagonal = column[i];
      column[i] = std::min({changed, column[i] + 1, column[i - 1] + 1});
    }
    best = std::min(best, column.back());  // and it may end anywhere
  }
  return match == Match::whole ? column.back() : best;
}

std::string near_names(std::string_view wanted, const std::vector<std::string>& known) {
  constexpr std::size_t suggested_at_most = 3;
  const std::string sought = lower(wanted);
  const std::size_t reach = std::max<std::size_t>(2, sought.size() / 3);

  std::vector<std::pair<std::size_t, std::string>> near;
  for (const std::string& name : known) {
    const std::string candidate = lower(name);
    const std::size_t distance = edit_distance(sought, candidate);
    const bool contained = sought.size() >= 3 && candidate.find(sought) != std::string::npos;
    if (contained || (distance <= reach && distance < sought.size())) near.emplace_back(distance, name);
  }
  if (near.empty()) return known_names(known);

  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  near.resize(std::min(near.size(), suggested_at_most));
  std::string text = "did you mean ";
  for (std::size_t i = 0; i < near.size(); ++i) {
    if (i > 0) text += i + 1 == near.size() ? " or " : ", ";
    text += named(near[i].second);
  }
  return text + '?';
}

}  // namespace lamina
