#pragma once
// What to suggest to someone who mistyped a name.

#include <string>
#include <string_view>
#include <vector>

namespace lamina {

/// A clause for the end of an error message: `did you mean "resnet50" or "resnet101"?`, with up to three names, nearest
/// first; where none is near, `known are "a", "b", ...`, cut after a dozen; where none is known, `there are none`.
/// Near are names within an edit distance of a third of the wanted length (at least 2, case ignored), and names that
/// contain the wanted one.
std::string near_names(std::string_view wanted, const std::vector<std::string>& known);

}  // namespace lamina
