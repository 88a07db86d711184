#pragma once
// Text of a file in a message.

#include <string>
#include <string_view>

namespace lamina {

/// The text in quotes for a message, as UTF-8: control characters escaped, shortened when long.
std::string in_quotes(std::string_view text);

}  // namespace lamina
