// From a status to an exception.

#include "call.h"

#include <string>
#include <string_view>

#include "lamina/error.h"
#include "status.h"

namespace lamina::cudnn {

void check(const Api& api, Status status, const char* call, const char* file, int line) {
  if (status == ok) return;
  std::string_view name = file;
  name.remove_prefix(name.find_last_of('/') + 1);
  const Meaning meant = meaning(api, status);
  std::string message = "cuDNN " + api.number() + ": " + call + " gave " + text(api, status);
  message += " [" + std::string(name) + ":" + std::to_string(line) + "]";
  if (meant == Meaning::not_supported) throw Unsupported(message);
  if (meant == Meaning::no_memory) throw OutOfMemory(message);
  throw DeviceError(message);
}

void missing(const Api& api, const char* name) {
  throw LoadError("cuDNN " + api.number() + (api.directory.empty() ? "" : " in " + api.directory) +
                  " has no entry point " + name + ", which is needed now; use another version");
}

}  // namespace lamina::cudnn
