#pragma once
// How fast the inner loop of the processor's products runs by where its operands are.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "lamina/api.h"
#include "lamina/shape.h"

namespace lamina {

/// The part of a product whose sums stay in registers.
struct KernelTile {
  int rows = 0, vectors = 0, lanes = 0;  ///< rows by so many vectors of so many elements

  std::string name() const { return std::to_string(rows) + "x" + std::to_string(vectors); }
  bool operator==(const KernelTile&) const = default;
};

/// One measurement, on one core. Rates are operations per second; a multiply-add counts as two.
struct KernelRate {
  std::string instruction_set;  ///< "x86-64-v4"
  KernelTile tile{};            ///< without rows: that of "registers", which no product has
  std::string operands;   ///< "registers"; "packed, L1"; "planes of 14x14, L2"; ...: what is read anew, and where from
  std::size_t bytes = 0;  ///< of what is read anew: the second factor, of which each part is used once per turn
  double flops_per_second = 0;  ///< nothing prefetched by the loop
  /// Each part prefetched while the one before is multiplied, as products do; 0: as above.
  double prefetched_flops_per_second = 0;
  double peak_flops_per_second = 0;  ///< of multiply-adds in registers, right before and after: the mean
  std::string bounds{};              ///< which layers take their operands from there, in a sentence
};

/// Measures every instruction set that runs here, widest first, with the register tiles of the `eigen` backend's
/// products: that of convolutions by products, and, where it is another, that of Winograd's. A few rows that stay in
/// the first-level cache multiply panels of columns, packed or in place in planes of 56x56 and 14x14. The sizes are
/// half of each cache's, at most 16 MiB, a convolution's block, and 256 MiB for memory. Takes a second or two for each
/// tile. Stops early once `stop` is true. Throws Unsupported for a type that the backend lacks.
LAMINA_API std::vector<KernelRate> kernel_rates(DType, const std::function<bool()>& stop = {});

}  // namespace lamina
