#pragma once
// The form of a file of measured choices.

#include <filesystem>
#include <map>
#include <string>

#include "lamina/choice_cache.h"

namespace lamina {

using ChoiceEntries = std::map<std::string, ChoiceCache::Entry>;  ///< by the text of their keys

/// No entries where there is no file. Throws FileError.
ChoiceEntries read_choices(const std::filesystem::path&);

std::string choices_text(const ChoiceEntries&);

}  // namespace lamina
