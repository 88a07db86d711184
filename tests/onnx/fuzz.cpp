// The target of libFuzzer: reads bytes as a model. The reader must succeed, or throw one of the library's errors. The
// reader may take memory of 10 times the model's bytes plus 256 KiB, and one second of processor time. A model that
// sets a new record of memory or time is printed. The program ends after LAMINA_FUZZ_SECONDS of its processor time.

#include <sanitizer/allocator_interface.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
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

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Prints a number that exceeds the record by at least 10 %, and makes it the record.
void surpass(double& record, double number, const char* what, std::size_t size) {
  if (number < 1.1 * record) return;
  record = number;
  std::fprintf(stderr, "most so far: %.3g %s, a model of %zu bytes\n", number, what, size);
}

double last_second() {
  const char* text = std::getenv("LAMINA_FUZZ_SECONDS");
  return text == nullptr ? 1e9 : std::atof(text);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  return __sanitizer_install_malloc_and_free_hooks(count_allocation, count_release) > 0 ? 0 : 1;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lamina;
  static const double end = last_second();
  static double slowest = 1e-3, largest = 1e-2;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // Models of an odd number of bytes are read with another batch than the file's.
  const OnnxOptions options{.batch = size % 2 == 1 ? 3 : 0,
                            .most_computed_numbers = static_cast<std::int64_t>(size) / 8 + 4096};
  const double start = processor_seconds();
  const std::size_t before = most_bytes = live_bytes;
  try {
    const onnx::ModelMessage model = onnx::decode_model(bytes, "fuzz");
    if (model.graph) onnx::Importer(model, options, "/nonexistent/fuzz.onnx").run();
  } catch (const Error&) {
  }
  const std::size_t limit = 10 * size + (1 << 18), took = most_bytes - before;
  const double now = processor_seconds();
  surpass(largest, static_cast<double>(took) / static_cast<double>(limit), "of the memory that it may take", size);
  surpass(slowest, now - start, "s of processor time", size);
  if (took > limit || now - start > 1) {
    std::fprintf(stderr, "a model of %zu bytes took %zu bytes and %.2f s\n", size, took, now - start);
    std::abort();
  }
  if (now > end) std::raise(SIGUSR1);  // libFuzzer then ends with its statistics
  return 0;
}
