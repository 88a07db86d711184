#pragma once
// The memory that a network would take at any batch, and the largest batch that fits.

#include <cstddef>
#include <optional>
#include <utility>

#include "bench/machine/backends.h"
#include "lamina/optimiser.h"
#include "session.h"

namespace lamina::bench {

struct LargestBatch {
  int batch = 0;  ///< largest batch; 0: not even one image fits
  std::size_t bytes = 0;
  bool at_least = false;  ///< whether larger batches were not tried
};

class MemoryPredictor {
 public:
  /// The state of `optimiser` is counted in training; none: parameters are not updated.
  MemoryPredictor(const Plans& plans, Backends& backends, Config config, Mode mode,
                  std::optional<Optimiser> optimiser = {})
      : plans_(&plans), backends_(&backends), config_(std::move(config)), mode_(mode), optimiser_(optimiser) {}

  /// Throws what predict_memory throws.
  MemoryReport at(int batch);
  LargestBatch largest_under(std::size_t limit);
  /// The options of the plan that is predicted.
  Options options(int batch);

 private:
  const Plans* plans_;
  Backends* backends_;
  Config config_;
  Mode mode_;
  std::optional<Optimiser> optimiser_;
};

}  // namespace lamina::bench
