#pragma once
// Bytes and seconds, as people write and read them.

#include <cstddef>
#include <string>
#include <string_view>

namespace lamina::bench {

constexpr double mebibyte = 1024.0 * 1024.0;

/// "4GiB", "1.5 GB", "512MiB", "4096": 2^10 steps with an i, 10^3 steps without. Throws UsageError.
std::size_t parse_bytes(std::string_view);

std::string bytes_text(double bytes);      ///< "4.21 GiB", "17 B"
std::string seconds_text(double seconds);  ///< "2 h 5 min", "3 min 20 s", "14 s"

}  // namespace lamina::bench
