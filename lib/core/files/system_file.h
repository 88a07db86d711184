#pragma once
// Files that the system keeps about itself, below /proc and /sys: one value in one line.

#include <filesystem>
#include <optional>
#include <string>

namespace lamina {

std::string first_line(const std::filesystem::path&);  ///< empty: there is no such file, or no right to read it

/// The number that the first line begins with.
std::optional<double> number_in(const std::filesystem::path&);

}  // namespace lamina
