#pragma once
// The meaning of a status, in every version. Version 9 renumbered them. Beyond these meanings only the library's own
// text is reliable.

#include <cstdint>
#include <string>

#include "api.h"

namespace lamina::cudnn {

enum class Meaning : std::uint8_t { success, not_initialized, bad_parameter, not_supported, no_memory, failed };

/// The meaning by the major version of the library.
Meaning meaning(const Api&, Status);

/// "CUDNN_STATUS_BAD_PARAM (2000)".
std::string name(const Api&, Status);

/// The name of the last call's status and, if the library has it (9), ": " and the text of its last error.
std::string text(const Api&, Status);

/// Whether a call was refused, rather than failed: nothing was enqueued, another algorithm may work.
bool refused(const Api&, Status);

}  // namespace lamina::cudnn
