// Runs one kernel that accesses memory out of bounds. With sanitizers this process must fail and name the kernel.
// usage: kernel_fault global|shared

#include <cstring>
#include <vector>

#include "emulator_kernels.h"

using namespace lamina::cuda_host;
using namespace lamina::cuda_host::trial;

int main(int argc, char** argv) {
  if (argc != 2) return 0;  // wrong use: the test expects a failure, so it notices this
  std::vector<int> x(8), y(4);
  if (std::strcmp(argv[1], "global") == 0)
    launch(LAMINA_KERNEL(beyond_global_kernel), 1, 4, 0, nullptr, 8, x.data(), y.data());
  if (std::strcmp(argv[1], "shared") == 0) launch(LAMINA_KERNEL(beyond_shared_kernel), 1, 4, 0, nullptr, 4, y.data());
  return 0;
}
