// A file that says it is a cuDNN, for tests of the loader: built once per FAKE_VERSION. It has what the loader demands,
// the numbers of its version, and one part beside it that it opens with the first convolution descriptor. Variants:
// FAKE_LACKS_SET_STREAM has no cudnnSetStream; FAKE_OPENS names the file that is opened in place of its own part.

#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {
constexpr bool is_old = FAKE_VERSION < 90000;
int make(void** to) {
  *to = std::malloc(1);
  return 0;
}
int destroy(void* object) {
  std::free(object);
  return 0;
}
}  // namespace

EXPORT std::size_t cudnnGetVersion() { return FAKE_VERSION; }
EXPORT const char* cudnnGetErrorString(int status) {
  if (status == 0) return "CUDNN_STATUS_SUCCESS";
  if (is_old) return status == 9 ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_UNKNOWN_STATUS";
  return status == 3000 ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_UNKNOWN_STATUS";
}
EXPORT int cudnnCreate(void** handle) { return make(handle); }
EXPORT int cudnnDestroy(void* handle) { return destroy(handle); }
#if !defined(FAKE_LACKS_SET_STREAM)
EXPORT int cudnnSetStream(void*, void*) { return 0; }
#endif
EXPORT int cudnnCreateTensorDescriptor(void** to) { return make(to); }
EXPORT int cudnnDestroyTensorDescriptor(void* object) { return destroy(object); }
EXPORT int cudnnSetTensor4dDescriptorEx(void*, int, int, int, int, int, int, int, int, int) { return 0; }
EXPORT int cudnnCreateFilterDescriptor(void** to) { return make(to); }
EXPORT int cudnnDestroyFilterDescriptor(void* object) { return destroy(object); }
EXPORT int cudnnSetFilter4dDescriptor(void*, int, int, int, int, int, int) { return is_old ? 9 : 3000; }
EXPORT int cudnnCreateConvolutionDescriptor(void** to) {
#if defined(FAKE_OPENS)
  if (dlopen(FAKE_OPENS, RTLD_NOW | RTLD_LOCAL) == nullptr) return is_old ? 8 : 1008;
#endif
  return make(to);
}
EXPORT int cudnnDestroyConvolutionDescriptor(void* object) { return destroy(object); }
EXPORT int cudnnSetConvolution2dDescriptor(void*, int, int, int, int, int, int, int, int) { return 0; }
EXPORT int cudnnSetConvolutionGroupCount(void*, int) { return 0; }
EXPORT int cudnnSetConvolutionMathType(void*, int) { return 0; }

namespace {
struct Result {
  int algorithm, status;
  float time;
  std::size_t bytes;
  int determinism, math, reserved[3];
};
int answer(int count, int* answered, Result* results) {
  for (int i = 0; i < count; ++i)
    results[i] = {count - 1 - i, i == 0 ? (is_old ? 9 : 3000) : 0, -1, 64, 1, FAKE_VERSION < 8000 ? 0 : 3, {}};
  *answered = count;
  return 0;
}
int workspace(int algorithm, std::size_t* bytes) {
  *bytes = 64 * static_cast<std::size_t>(algorithm);
  return 0;
}
}  // namespace

EXPORT int cudnnGetConvolutionForwardAlgorithmMaxCount(void*, int* count) { return *count = 8, 0; }
EXPORT int cudnnGetConvolutionForwardAlgorithm_v7(void*, void*, void*, void*, void*, int n, int* m, Result* r) {
  return answer(n, m, r);
}
EXPORT int cudnnGetConvolutionForwardWorkspaceSize(void*, void*, void*, void*, void*, int algorithm,
                                                   std::size_t* bytes) {
  return workspace(algorithm, bytes);
}
#if FAKE_VERSION >= 90000
EXPORT void cudnnGetLastErrorString(char* to, std::size_t size) {
  if (size > 0) *to = 0;
}
#endif
#if FAKE_VERSION >= 8000
EXPORT int cudnnBackendCreateDescriptor(int, void** to) { return make(to); }
#endif
