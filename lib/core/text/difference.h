#pragma once
// Where two descriptions of a run differ.

#include <string>

namespace lamina {

/// The difference of two texts whose parts have ", " between them, in words: `difference("it has", a, "this run", b)`
/// is "it has seed 0, and this run seed 1". Fingerprints of a network, learning rates or samples are not shown.
std::string difference(const std::string& one, const std::string& its, const std::string& other,
                       const std::string& theirs);

}  // namespace lamina
