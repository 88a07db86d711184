#pragma once
// Where tables go.

#include <functional>
#include <string>

namespace lamina::bench {

/// Takes a table, or a part of one, as soon as it is made.
using Print = std::function<void(const std::string&)>;

}  // namespace lamina::bench
