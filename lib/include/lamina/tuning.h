#pragma once
// Algorithms picked by timing.

#include <filesystem>
#include <memory>

#include "lamina/api.h"
#include "lamina/backend.h"

namespace lamina {

/// A tuner for Options::tuner. For each pass it times the algorithms that a choice leaves open, in turns. With a file,
/// measurements are kept there (ChoiceCache) and not repeated. Throws FileError if the file exists and cannot be read.
/// measure() throws FileError if the file cannot be written, and Unsupported if no algorithm can run. One thread at a
/// time.
LAMINA_API std::shared_ptr<Tuner> make_tuner(const std::filesystem::path& choice_cache = {});

}  // namespace lamina
