// Where two descriptions of a run differ.

#include "lib/core/text/difference.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace lamina {
namespace {

constexpr std::string_view separator = ", ";

/// The parts of a description. A comma between parentheses, as in an optimiser's numbers, does not separate parts.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth == 0 && text.compare(i, separator.size(), separator) == 0) {
      parts.emplace_back();
      i += separator.size() - 1;
    } else {
      parts.back() += text[i];
    }
  }
  return parts;
}

/// A fingerprint in a description: the words before it, the words that a user reads in place of both, and what the
/// message says if nothing else differs.
struct Fingerprint {
  std::string_view before, shown, said;
};
constexpr Fingerprint fingerprints[] = {{"graph ", "a network", "a network of other ops or shapes"},
                                        {" by learning rates ", "", "other learning rates"},
                                        {" of data ", "", "other samples"}};

/// A part in the form that a user reads.
std::string shown(std::string part) {
  for (const Fingerprint& each : fingerprints)
    if (const std::size_t at = part.find(each.before); at != part.npos)
      part.replace(at, part.find_first_not_of("0123456789", at + each.before.size()) - at, each.shown);
  return part;
}

/// The parts that `others` lack, in the form that a user reads.
std::string lacking(const std::vector<std::string>& parts, const std::vector<std::string>& others) {
  std::string text;
  for (const std::string& part : parts)
    if (std::ranges::find(others, shown(part), shown) == others.end())
      text += (text.empty() ? "" : separator.data()) + shown(part);
  return text.empty() ? "nothing else" : text;
}

}  // namespace

std::string difference(const std::string& one, const std::string& its, const std::string& other,
                       const std::string& theirs) {
  const std::vector<std::string> a = parts_of(its), b = parts_of(theirs);
  const std::string in_one = lacking(a, b), in_other = lacking(b, a);
  if (in_one != in_other) return one + " " + in_one + ", and " + other + " " + in_other;
  std::string text;
  for (const Fingerprint& each : fingerprints)
    for (const std::string& part : a)
      if (part.find(each.before) != part.npos && std::ranges::find(b, part) == b.end())
        text += (text.empty() ? one + " " : std::string(separator)) + std::string(each.said);
  return text;
}

}  // namespace lamina
