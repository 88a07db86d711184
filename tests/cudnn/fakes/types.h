#pragma once
// The types that each call of cuDNN supports.

#include <cstddef>
#include <string>
#include <vector>

namespace lamina::test {

/// The name of a type, such as "f16".
std::string type_text(int type);

/// Why the manual does not list the types of a call's arguments, or empty if it lists them. `words` are the arguments
/// as Fake writes them: descriptors as their settings.
std::string unlisted_types(const std::string& call, const std::vector<std::string>& words, std::size_t version);

}  // namespace lamina::test
