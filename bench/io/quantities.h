#pragma once
// Bytes and seconds, as people read them.

#include <string>

namespace lamina::bench {

constexpr double mebibyte = 1024.0 * 1024.0;

std::string bytes_text(double bytes);      ///< "4.21 GiB", "17 B"
std::string seconds_text(double seconds);  ///< "2 h 5 min", "3 min 20 s", "14 s"

}  // namespace lamina::bench
