// Turns a status into its meaning, its text, or an exception.

#include "call.h"

#include <string_view>

#include "lamina/error.h"

namespace lamina::cudnn {
namespace {

/// Versions 7 and 8.
Meaning old_meaning(Status status) {
  switch (status) {
    case 2: return Meaning::no_memory;
    case 3:
    case 5: return Meaning::bad_parameter;  // BAD_PARAM, INVALID_VALUE
    case 6:
    case 9:
    case 11: return Meaning::not_supported;  // ARCH_MISMATCH, NOT_SUPPORTED, RUNTIME_PREREQUISITE_MISSING
    default: return Meaning::other;
  }
}

/// Version 9: thousands are kinds, and two of the internal errors mean a lack of memory.
Meaning new_meaning(Status status) {
  if (status == 4003 || status == 4004) return Meaning::no_memory;
  switch (status / 1000) {
    case 2: return Meaning::bad_parameter;
    case 3: return Meaning::not_supported;
    default: return Meaning::other;
  }
}

std::string last_error(const Api& api) {
  if (api.GetLastErrorString == nullptr) return {};
  char buffer[1024] = {};
  api.GetLastErrorString(buffer, sizeof buffer);
  buffer[sizeof buffer - 1] = 0;
  std::string said = buffer;
  while (!said.empty() && (said.back() == '\n' || said.back() == ' ')) said.pop_back();
  return said;
}

}  // namespace

Meaning meaning(const Api& api, Status status) { return api.major() < 9 ? old_meaning(status) : new_meaning(status); }

std::string name(const Api& api, Status status) {
  const char* said = api.GetErrorString == nullptr ? nullptr : api.GetErrorString(status);
  return std::string(said == nullptr ? "status" : said) + " (" + std::to_string(status) + ")";
}

std::string text(const Api& api, Status status) {
  std::string result = name(api, status);
  if (const std::string said = last_error(api); !said.empty()) result += ": " + said;
  return result;
}

bool refused(const Api& api, Status status) {
  const Meaning meant = meaning(api, status);
  return meant == Meaning::not_supported || meant == Meaning::bad_parameter;
}

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
