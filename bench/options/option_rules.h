#pragma once
// Which flags go together.

#include <functional>

#include "options.h"

namespace lamina::bench {

/// Throws UsageError for flags that do not go together, and for one that what was asked for would not look at. `given`
/// tells whether a flag is on the command line.
void check_flags(const std::function<bool(const char* flag)>& given, const BenchOptions&);

}  // namespace lamina::bench
