// A driver's library that accepts kernels and runs nothing. With it on the path of libraries, under the name
// libcuda.so.1, cuDNN compiles and serialises plans on a machine without a GPU. Everything that is not here answers as
// the toolkit's stub does.

#include <cstdint>
#include <cstring>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

enum { ok = 0, stub_library = 34 };

int unsupported() { return stub_library; }

/// Gives a handle that nothing else has.
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
  *version = 13000;  // as the properties in bench/devices have it
  return ok;
}
EXPORT int cuGetErrorString(int, const char** text) {
  *text = "the fake driver runs nothing";
  return ok;
}
// The arguments behind the first ones are of no use here.
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

// What cuDNN asks the loader for, so that it must be there: it need not work.
#define UNSUPPORTED(name) \
  EXPORT int name() { return unsupported(); }
UNSUPPORTED(cuCtxGetCurrent)
UNSUPPORTED(cuCtxGetDevice)
UNSUPPORTED(cuCtxGetLimit)
UNSUPPORTED(cuCtxPopCurrent)
UNSUPPORTED(cuCtxPushCurrent)
UNSUPPORTED(cuDeviceGet)
UNSUPPORTED(cuDeviceGetAttribute)
UNSUPPORTED(cuDeviceGetCount)
UNSUPPORTED(cuDevicePrimaryCtxRelease)
UNSUPPORTED(cuDevicePrimaryCtxReset)
UNSUPPORTED(cuDevicePrimaryCtxRetain)
UNSUPPORTED(cuGetErrorName)
UNSUPPORTED(cuGetExportTable)
UNSUPPORTED(cuInit)
UNSUPPORTED(cuLaunchCooperativeKernel)
UNSUPPORTED(cuLaunchKernel)
UNSUPPORTED(cuLaunchKernelEx)
UNSUPPORTED(cuLibraryLoadFromFile)
UNSUPPORTED(cuLinkAddData)
UNSUPPORTED(cuLinkAddData_v2)
UNSUPPORTED(cuLinkAddFile_v2)
UNSUPPORTED(cuLinkComplete)
UNSUPPORTED(cuLinkCreate)
UNSUPPORTED(cuLinkCreate_v2)
UNSUPPORTED(cuLinkDestroy)
UNSUPPORTED(cuMemcpyDtoH_v2)
UNSUPPORTED(cuModuleGetGlobal_v2)
UNSUPPORTED(cuModuleLoadFatBinary)
UNSUPPORTED(cuOccupancyMaxActiveBlocksPerMultiprocessor)
UNSUPPORTED(cuOccupancyMaxPotentialClusterSize)
UNSUPPORTED(cuStreamGetCtx)
UNSUPPORTED(cuStreamGetGreenCtx)
UNSUPPORTED(cuStreamSynchronize)
UNSUPPORTED(cuTensorMapEncodeIm2col)
UNSUPPORTED(cuTensorMapEncodeTiled)

EXPORT int cuGetProcAddress_v2(const char* name, void** function, int, std::uint64_t, int* status) {
#define ENTRY(name) \
  { #name, reinterpret_cast < void*>(&name) }
  static const struct {
    const char* name;
    void* function;
  } entries[] = {
      ENTRY(cuDriverGetVersion),   ENTRY(cuGetErrorString),    ENTRY(cuLibraryLoadData),   ENTRY(cuLibraryUnload),
      ENTRY(cuLibraryGetKernel),   ENTRY(cuLibraryGetModule),  ENTRY(cuKernelGetFunction), ENTRY(cuKernelGetAttribute),
      ENTRY(cuKernelSetAttribute), ENTRY(cuFuncGetAttribute),  ENTRY(cuFuncSetAttribute),  ENTRY(cuModuleLoadData),
      ENTRY(cuModuleLoadDataEx),   ENTRY(cuModuleGetFunction), ENTRY(cuModuleUnload),      ENTRY(cuGetProcAddress_v2)};
  *function = reinterpret_cast<void*>(&unsupported);
  for (const auto& entry : entries)
    if (std::strcmp(entry.name, name) == 0) *function = entry.function;
  if (std::strcmp(name, "cuGetProcAddress") == 0) *function = reinterpret_cast<void*>(&cuGetProcAddress_v2);
  if (status != nullptr) *status = 0;
  return ok;
}
EXPORT int cuGetProcAddress(const char* name, void** function, int version, std::uint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
