// The parts of the error classes that are not in their header.

#include <string>

#include "lamina/error.h"

namespace lamina {

OutOfMemory::OutOfMemory(std::size_t wanted_bytes, std::size_t free_bytes, const std::string& reason)
    : DeviceError("out of memory: " + std::to_string(wanted_bytes) + " bytes wanted, " + std::to_string(free_bytes) +
                  " bytes free" + reason),
      wanted_bytes_(wanted_bytes),
      free_bytes_(free_bytes) {}

OutOfMemory::OutOfMemory(const std::string& message) : DeviceError(message) {}

Error::~Error() = default;
ShapeError::~ShapeError() = default;
Unsupported::~Unsupported() = default;
DeviceError::~DeviceError() = default;
OutOfMemory::~OutOfMemory() = default;
LoadError::~LoadError() = default;
FileError::~FileError() = default;
UsageError::~UsageError() = default;

}  // namespace lamina
