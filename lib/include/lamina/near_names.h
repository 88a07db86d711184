#pragma once
// Similar names: an edit distance, and suggestions for a mistyped name.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/api.h"

namespace lamina {

/// What a pattern has to match: the whole text, or the part of it that fits best.
enum class Match { whole, part };

/// The least number of characters to change, add or drop in `pattern` so that it matches `text`.
LAMINA_API std::size_t edit_distance(std::string_view pattern, std::string_view text, Match = Match::whole);

/// A clause for the end of an error message. It is `did you mean "resnet50" or "resnet101"?` with up to three names,
/// nearest first; if no name is near, `valid names: "a", "b", ...`, truncated after a dozen; if no name is known,
/// `there are none`. Near names are within an edit distance of a third of the wanted length (at least 2, case ignored),
/// or contain the wanted name if it has 3 letters or more.
LAMINA_API std::string near_names(std::string_view wanted, const std::vector<std::string>& known);

}  // namespace lamina
