#pragma once
// Reading and writing safetensors files.

#include <filesystem>

#include "lamina/api.h"
#include "lamina/weights.h"

namespace lamina {

/// Throws FileError, naming file and tensor: unreadable or not a regular file, truncated, trailing bytes, a header that
/// is too long, not JSON, not of the form or with a key twice, unknown element types, offsets that overlap, leave gaps,
/// or do not match the extents. Memory use is proportional to the file's length, whatever its header claims. Integer
/// tensors (I64 and the like, as PyTorch's num_batches_tracked) are checked and skipped, and so is metadata.
LAMINA_API TensorFile read_safetensors(const std::filesystem::path&);

/// Writes to a temporary file beside it, waits for the disk and renames, so that a failure leaves only the old file.
/// Rounds to nearest, ties to even; infinities and NaNs are kept. Throws FileError for a finite number that would round
/// to an infinity, for values that do not fill the extents, for a name that is not UTF-8, and where the file cannot be
/// written, for instance on a full disk.
LAMINA_API void write_safetensors(const std::filesystem::path&, const TensorFile&);

}  // namespace lamina
