// Similar names: edit distance, and a clause with the nearest names.

#include "support/near.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace lamina {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return result;
}

/// Levenshtein distance: insertions, deletions and substitutions that turn one into the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

std::string quoted(const std::string& name) { return '"' + name + '"'; }

std::string known_names(const std::vector<std::string>& known) {
  constexpr std::size_t shown_at_most = 12;
  if (known.empty()) return "there are none";
  std::string text = known.size() == 1 ? "known is " : "known are ";
  const std::size_t shown = std::min(known.size(), shown_at_most);
  for (std::size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + quoted(known[i]);
  if (shown < known.size()) text += " and " + std::to_string(known.size() - shown) + " more";
  return text;
}

}  // namespace

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
    text += quoted(near[i].second);
  }
  return text + '?';
}

}  // namespace lamina
