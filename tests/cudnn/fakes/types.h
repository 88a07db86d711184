#pragma once
// The types that the library takes, call by call.

#include <cstddef>
#include <string>
#include <vector>

namespace lamina::test {

/// The name of a type's number: "f16".
std::string type_text(int type);

/// Why the manual does not list the types of a call's descriptors; empty if it does. `words` has descriptors by their
/// settings, like Fake.
std::string unlisted_types(const std::string& call, const std::vector<std::string>& words, std::size_t version);

}  // namespace lamina::test
