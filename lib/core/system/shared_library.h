#pragma once
// Libraries that are opened at run time.

#include <dlfcn.h>

namespace lamina {

/// Sets `entry` to the function of this name in a library that dlopen opened, or to null if the library lacks it.
template <class Function>
void resolve(void* library, const char* name, Function*& entry) {
  entry = reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace lamina
