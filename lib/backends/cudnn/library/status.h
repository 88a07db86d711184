#pragma once
// What a status means, whatever the version: the numbers were dealt out anew in 9, and only the library's own text can
// be relied upon for the rest.

#include <cstdint>
#include <string>

#include "api.h"

namespace lamina::cudnn {

enum class Meaning : std::uint8_t { success, not_initialized, bad_parameter, not_supported, no_memory, failed };

/// By the major version of the library that answered.
Meaning meaning(const Api&, Status);

/// "CUDNN_STATUS_BAD_PARAM (2000)".
std::string name(const Api&, Status);

/// For the status of the call made last: its name and, where the library tells (9), ": " and the text of its last
/// error.
std::string text(const Api&, Status);

/// Whether a call was refused, rather than failed: nothing was enqueued, another way may do.
bool refused(const Api&, Status);

}  // namespace lamina::cudnn
