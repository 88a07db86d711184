#pragma once
// Reading and writing safetensors files.

#include <filesystem>

#include "lamina/api.h"
#include "lamina/weights.h"

namespace lamina {

/// Memory use is proportional to the file's length, whatever its header claims. Integer tensors (I64 and the like, such
/// as PyTorch's num_batches_tracked) and metadata are checked and skipped.
///
/// Throws FileError, naming file and tensor, for
/// - a file that is unreadable, not a regular file, truncated, or longer than its tensors;
/// - a header that is too long, not JSON, of another form, or has a key twice;
/// - unknown element types;
/// - offsets that overlap, leave gaps, or do not match the extents.
LAMINA_API TensorFile read_safetensors(const std::filesystem::path&);

/// Writes to a temporary file in the same folder, waits for the disk and renames, so that a failure leaves only the old
/// file. Rounds to nearest, ties to even; keeps infinities and NaNs. Throws FileError for a finite number that would
/// round to an infinity, for values that do not fill the extents, for a name that is reserved or not UTF-8, and if the
/// file cannot be written, for instance on a full disk.
LAMINA_API void write_safetensors(const std::filesystem::path&, const TensorFile&);

}  // namespace lamina
