// The graph API of the fake library: exports the functions of fake_graph.h under cuDNN's names.

#include "tests/cudnn/fakes/fake_graph.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {
const lamina::cudnn::Api& table() {
  static const lamina::cudnn::Api api = lamina::test::fake_graph_api();
  return api;
}
}  // namespace

EXPORT int cudnnBackendCreateDescriptor(int kind, void** to) { return table().BackendCreateDescriptor(kind, to); }
EXPORT int cudnnBackendDestroyDescriptor(void* object) { return table().BackendDestroyDescriptor(object); }
EXPORT int cudnnBackendFinalize(void* object) { return table().BackendFinalize(object); }
EXPORT int cudnnBackendSetAttribute(void* object, int attribute, int type, std::int64_t count, const void* elements) {
  return table().BackendSetAttribute(object, attribute, type, count, elements);
}
EXPORT int cudnnBackendGetAttribute(void* object, int attribute, int type, std::int64_t room, std::int64_t* count,
                                    void* elements) {
  return table().BackendGetAttribute(object, attribute, type, room, count, elements);
}
