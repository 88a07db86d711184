// The one error that may be made of numbers.

#include "lamina/error.h"

#include <string>

namespace lamina {

OutOfMemory::OutOfMemory(std::size_t wanted_bytes, std::size_t free_bytes)
    : DeviceError("out of memory: " + std::to_string(wanted_bytes) + " bytes wanted, " + std::to_string(free_bytes) +
                  " bytes free"),
      wanted_bytes_(wanted_bytes),
      free_bytes_(free_bytes) {}

OutOfMemory::OutOfMemory(const std::string& message) : DeviceError(message) {}

}  // namespace lamina
