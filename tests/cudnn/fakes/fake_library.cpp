// A fake cuDNN library for tests of the loader, built once per FAKE_VERSION. It has the functions that the loader
// needs, its version's numbers, and convolutions that compute nothing. Variants: with FAKE_LACKS_SET_STREAM it lacks
// cudnnSetStream. With FAKE_GRAPH, fake_graph_library.cpp has the graph API. With FAKE_OPENS, the call FAKE_OPENS_WITH
// (`descriptor`, `query`, `forward`, `backward_params` or `backward_data`) opens this other file, which closes with
// this library.

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

#if defined(FAKE_OPENS)
namespace {
enum class With { descriptor, query, forward, backward_params, backward_data };
void* part = nullptr;
bool opened(With with) {
  if (with == With::FAKE_OPENS_WITH && part == nullptr) part = dlopen(FAKE_OPENS, RTLD_NOW | RTLD_LOCAL);
  return with != With::FAKE_OPENS_WITH || part != nullptr;
}
__attribute__((destructor)) void close_part() {
  if (part != nullptr) dlclose(part);
}
}  // namespace
#define OPEN_WITH(call) \
  if (!opened(With::call)) return is_old ? 8 : 1008
#else
#define OPEN_WITH(call)
#endif

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
EXPORT int cudnnSetFilter4dDescriptor(void*, int, int format, int, int, int, int) {
  return format == 0 ? 0 : is_old ? 9 : 3000;  // takes NCHW only
}
EXPORT int cudnnCreateConvolutionDescriptor(void** to) {
  OPEN_WITH(descriptor);
  return make(to);
}
EXPORT int cudnnDestroyConvolutionDescriptor(void* object) { return destroy(object); }
EXPORT int cudnnSetConvolution2dDescriptor(void*, int, int, int, int, int, int, int, int) { return 0; }
EXPORT int cudnnSetConvolutionGroupCount(void*, int) { return 0; }
EXPORT int cudnnSetConvolutionMathType(void*, int) { return 0; }
EXPORT int cudnnCreateActivationDescriptor(void** to) { return make(to); }
EXPORT int cudnnDestroyActivationDescriptor(void* object) { return destroy(object); }
EXPORT int cudnnSetActivationDescriptor(void*, int, int, double) { return 0; }

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
}  // namespace

namespace {
int ran = 0;
}
/// The last run: the algorithm plus 100 for forward, 200 for backward_params, 300 for backward_data.
EXPORT int fake_ran() { return ran; }

// The functions of each pass: answers to queries, workspace, and a run.
#define PASS(Pass, opens, algorithms, number)                                                                         \
  EXPORT int cudnnGetConvolution##Pass##AlgorithmMaxCount(void*, int* count) { return *count = algorithms, 0; }       \
  EXPORT int cudnnGetConvolution##Pass##Algorithm_v7(void*, void*, void*, void*, void*, int n, int* m, Result* r) {   \
    OPEN_WITH(query);                                                                                                 \
    return answer(n, m, r);                                                                                           \
  }                                                                                                                   \
  EXPORT int cudnnGetConvolution##Pass##WorkspaceSize(void*, void*, void*, void*, void*, int algorithm,               \
                                                      std::size_t* bytes) {                                           \
    return *bytes = 64 * static_cast<std::size_t>(algorithm), 0;                                                      \
  }                                                                                                                   \
  EXPORT int cudnnConvolution##Pass(void*, const void*, void*, const void*, void*, const void*, void*, int algorithm, \
                                    void*, std::size_t, const void*, void*, void*) {                                  \
    OPEN_WITH(opens);                                                                                                 \
    return ran = (number) + algorithm, 0;                                                                             \
  }
PASS(Forward, forward, 8, 100)
PASS(BackwardFilter, backward_params, 7, 200)
PASS(BackwardData, backward_data, 6, 300)

#if FAKE_VERSION >= 90000
EXPORT void cudnnGetLastErrorString(char* to, std::size_t size) {
  if (size > 0) *to = 0;
}
#endif
#if FAKE_VERSION >= 8000 && !defined(FAKE_GRAPH)
EXPORT int cudnnBackendCreateDescriptor(int, void** to) { return make(to); }
#endif
