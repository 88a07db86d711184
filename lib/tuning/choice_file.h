#pragma once
// The format of a file of measured choices.

#include <filesystem>
#include <map>
#include <string>

#include "lamina/choice_cache.h"

namespace lamina {

/// The entries of such a file, each by the text of its key.
using ChoiceEntries = std::map<std::string, ChoiceCache::Entry>;

/// Without a file there are no entries. Throws FileError.
ChoiceEntries read_choices(const std::filesystem::path&);

std::string choices_text(const ChoiceEntries&);

}  // namespace lamina
