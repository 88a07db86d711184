#pragma once
// This process's resident memory, as Linux counts it. On other systems it is unknown.

#include <cstdint>
#include <optional>

namespace lamina::test {

std::optional<std::int64_t> resident_bytes();       ///< now
std::optional<std::int64_t> peak_resident_bytes();  ///< since the process began, or since reset_peak()

/// Makes the present size the peak. Returns false if the system does not allow it.
bool reset_peak();

}  // namespace lamina::test
