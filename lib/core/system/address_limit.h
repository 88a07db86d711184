#pragma once
// The limit of a process's address space. It makes an allocation fail before memory is used up.

#include <sys/resource.h>

#include <string>

namespace lamina {

/// "; this process may have 2147483648 bytes of address space (ulimit -v)", or nothing where there is no limit.
inline std::string address_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return "; this process may have " + std::to_string(limit.rlim_cur) + " bytes of address space (ulimit -v)";
}

}  // namespace lamina
