#pragma once
// Checks of every data set, however it was made.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "lamina/data.h"

namespace lamina {

/// Throws UsageError for a set whose parts contradict each other. The message begins with `what`.
void check(const ImageSet&, const std::string& what);
void check(const IdSet&, const std::string& what);

/// "image 3 has the label 7, which is not below 5" about the first label not below `classes`; empty if all are below.
std::string wrong_label(std::span<const std::uint8_t> labels, int classes, const char* sample);

/// folder/name, or folder/name.gz if only that exists; an empty path if neither does.
std::filesystem::path plain_or_gz(const std::filesystem::path& folder, const std::string& name);

}  // namespace lamina
