#pragma once
// The memory that a network would take at any batch, and the largest batch that fits.

#include <cstddef>
#include <utility>

#include "bench/machine/backends.h"
#include "config.h"
#include "plans.h"

namespace lamina::bench {

struct LargestBatch {
  int batch = 0;  ///< 0: not even one image fits
  std::size_t bytes = 0;
  bool at_least = false;  ///< larger ones were not tried
};

class MemoryPredictor {
 public:
  MemoryPredictor(Plans& plans, Backends& backends, Config config, Mode mode)
      : plans_(&plans), backends_(&backends), config_(std::move(config)), mode_(mode) {}

  /// Throws what predict_memory throws.
  MemoryReport at(int batch);
  LargestBatch largest_under(std::size_t limit);

 private:
  Plans* plans_;
  Backends* backends_;
  Config config_;
  Mode mode_;
};

}  // namespace lamina::bench
