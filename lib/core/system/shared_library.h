#pragma once
// Libraries that are opened at run time.

#include <dlfcn.h>

#include <string>

namespace lamina {

/// Sets `entry` to the function of this name in a library that dlopen opened, or to null if the library lacks it.
template <class Function>
void resolve(void* library, const char* name, Function*& entry) {
  entry = reinterpret_cast<Function*>(dlsym(library, name));
}

/// Why dlopen or dlsym failed last; `unknown` if the loader does not say.
inline std::string loader_error(const std::string& unknown) {
  const char* const text = dlerror();
  return text == nullptr ? unknown : text;
}

}  // namespace lamina
