// The meaning of a status, in every version.

#include "status.h"

namespace lamina::cudnn {
namespace {

/// Versions 7 and 8.
Meaning old_meaning(Status status) {
  switch (status) {
    case 0: return Meaning::success;
    case 1: return Meaning::not_initialized;
    case 2: return Meaning::no_memory;
    case 3:
    case 5: return Meaning::bad_parameter;  // BAD_PARAM, INVALID_VALUE
    case 6:
    case 9:
    case 11: return Meaning::not_supported;  // ARCH_MISMATCH, NOT_SUPPORTED, RUNTIME_PREREQUISITE_MISSING
    default: return Meaning::failed;
  }
}

/// Version 9: thousands are kinds, and two of the internal errors mean a lack of memory.
Meaning new_meaning(Status status) {
  if (status == 0) return Meaning::success;
  if (status == 1001) return Meaning::not_initialized;
  if (status == 4003 || status == 4004) return Meaning::no_memory;
  switch (status / 1000) {
    case 2: return Meaning::bad_parameter;
    case 3: return Meaning::not_supported;
    default: return Meaning::failed;
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

}  // namespace lamina::cudnn
