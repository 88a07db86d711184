// A fake driver library that accepts kernels and runs nothing. If the loader finds it as libcuda.so.1, cuDNN compiles
// and serialises plans on a machine without a GPU. All other functions return an error, as the toolkit's stub library
// does.

#include <dlfcn.h>

#include <cstdint>
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

enum { ok = 0, stub_library = 34 };

/// Gives a unique handle.
int give(void** to) {
  static std::uintptr_t last = 0x1000;
  *to = reinterpret_cast<void*>(last += 16);
  return ok;
}

int set_zero(int* value) {
  *value = 0;
  return ok;
}

}  // namespace

EXPORT int cuDriverGetVersion(int* version) {
  *version = 13000;  // the version in the files of bench/devices
  return ok;
}
EXPORT int cuGetErrorString(int, const char** text) {
  *text = "the fake driver runs nothing";
  return ok;
}
/// The body of all functions that cuDNN looks up but does not need. CMakeLists.txt lists their names.
EXPORT int unsupported() { return stub_library; }
// Parameters after the first ones are left out, because they are not needed here.
EXPORT int cuLibraryLoadData(void** library) { return give(library); }
EXPORT int cuLibraryUnload() { return ok; }
EXPORT int cuLibraryGetKernel(void** kernel) { return give(kernel); }
EXPORT int cuLibraryGetModule(void** module) { return give(module); }
EXPORT int cuKernelGetFunction(void** function) { return give(function); }
EXPORT int cuKernelGetAttribute(int* value) { return set_zero(value); }
EXPORT int cuKernelSetAttribute() { return ok; }
EXPORT int cuFuncGetAttribute(int* value) { return set_zero(value); }
EXPORT int cuFuncSetAttribute() { return ok; }
EXPORT int cuModuleLoadData(void** module) { return give(module); }
EXPORT int cuModuleLoadDataEx(void** module) { return give(module); }
EXPORT int cuModuleGetFunction(void** function) { return give(function); }
EXPORT int cuModuleUnload() { return ok; }

EXPORT int cuGetProcAddress_v2(const char* name, void** function, int, std::uint64_t, int* status) {
  static void* const self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  *function = dlsym(self, std::strcmp(name, "cuGetProcAddress") == 0 ? "cuGetProcAddress_v2" : name);
  if (*function == nullptr) *function = reinterpret_cast<void*>(&unsupported);
  if (status != nullptr) *status = 0;
  return ok;
}
EXPORT int cuGetProcAddress(const char* name, void** function, int version, std::uint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
