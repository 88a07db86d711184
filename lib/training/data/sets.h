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

/// The index of the first label that is not below `classes`; labels.size() if there is none.
std::size_t first_wrong_label(std::span<const std::uint8_t> labels, int classes);

/// folder/name, or folder/name.gz if only that exists; an empty path if neither does.
std::filesystem::path plain_or_gz(const std::filesystem::path& folder, const std::string& name);

}  // namespace lamina
