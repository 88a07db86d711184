#pragma once
// What share of the peak a processor's convolutions by products can reach, by their shapes and measured rates.

#include <optional>
#include <string>
#include <vector>

#include "bench/io/text_table.h"
#include "lamina/kernel_rates.h"
#include "lamina/op.h"

namespace lamina::bench {

/// What a core does, as measured. Operations and bytes per second.
struct ProductRates {
  std::string instruction_set;
  int tile_rows = 0;
  double peak = 0, packed = 0;
  double small_planes = 0, large_planes = 0;  ///< of columns that are read in place; 0: all are packed
  double bytes_per_second = 0;                ///< of memory, a core's share
};

/// Those of the first set of kernel_rates(), the widest. Shares of the peak of their moment are taken of the first
/// peak. Nothing where a place is missing because the measurement was stopped.
std::optional<ProductRates> product_rates(const std::vector<KernelRate>&, double bytes_per_second);

/// Seconds of one core for one pass of a convolution by a product, batch and all.
struct PredictedPass {
  double flops = 0;     ///< operations of the definition
  double multiply = 0;  ///< the register tiles of the product, edges included
  double move = 0;      ///< tensors from and to memory, and packing, at the rate of memory

  double share(double peak) const;  ///< of the peak, if these two add up
};
PredictedPass predict(const Conv&, const Shape& x, const Shape& y, Pass, const ProductRates&);

/// Of the 1x1 and strided convolutions of the networks, batch 16, f32: a line for each distinct one and, as text, the
/// sums. Throws UsageError for an unknown network.
std::string predicted_shares(const std::vector<std::string>& networks, const ProductRates&, Format);

}  // namespace lamina::bench
