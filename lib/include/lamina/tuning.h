#pragma once
// Algorithms picked by timing.

#include <filesystem>
#include <memory>

#include "lamina/api.h"
#include "lamina/backend.h"

namespace lamina {

/// A tuner for Options::tuner: it times each algorithm that a choice leaves open in a race, in turns, for each pass.
/// With a file, what is measured is kept there (ChoiceCache), and what is there is not measured again. Throws FileError
/// if there is such a file that cannot be read; measure() throws it if the file cannot be written, Unsupported where no
/// algorithm can run. One thread at a time.
LAMINA_API std::shared_ptr<Tuner> make_tuner(const std::filesystem::path& choice_cache = {});

}  // namespace lamina
