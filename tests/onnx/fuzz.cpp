// libFuzzer's target: any bytes as a model. Read, or one of the library's errors; anything else is a find, and so is
// memory above 10 times the bytes and 256 KiB.

#include <sanitizer/allocator_interface.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "lamina/error.h"
#include "lamina/onnx.h"
#include "lib/onnx/importer.h"

namespace {

std::size_t live_bytes = 0, most_bytes = 0;

void count_allocation(const volatile void*, std::size_t size) {
  live_bytes += size;
  if (live_bytes > most_bytes) most_bytes = live_bytes;
}

void count_release(const volatile void* data) { live_bytes -= __sanitizer_get_allocated_size(const_cast<void*>(data)); }

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return __sanitizer_install_malloc_and_free_hooks(count_allocation, count_release) > 0 ? 0 : 1;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lamina;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const OnnxOptions options{.most_computed_numbers = static_cast<std::int64_t>(size) / 8 + 4096};
  const std::size_t before = most_bytes = live_bytes;
  try {
    const onnx::ModelMessage model = onnx::decode_model(bytes, "fuzz");
    if (model.graph) onnx::Importer(model, options, "/nonexistent/fuzz.onnx").run();
  } catch (const Error&) {
  }
  constexpr std::size_t some = 1 << 18;
  if (most_bytes - before > 10 * size + some) {
    std::fprintf(stderr, "a model of %zu bytes took %zu\n", size, most_bytes - before);
    std::abort();
  }
  return 0;
}
