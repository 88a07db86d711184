// The memory that a network would take.

#include "memory_prediction.h"

#include <limits>
#include <numeric>

#include "lamina/error.h"

namespace lamina::bench {
namespace {

constexpr int largest_batch_tried = 1 << 16;

}  // namespace

Options MemoryPredictor::options(int batch) {
  config_.batch = batch;
  Options options = plans_->options(config_, mode_);
  if (mode_ == Mode::training) options.optimiser = optimiser_;
  return options;
}

MemoryReport MemoryPredictor::at(int batch) {
  const Options its = options(batch);
  return predict_memory(plans_->graph(config_), backends_->at(config_.backend), its);
}

LargestBatch MemoryPredictor::largest_under(std::size_t limit) {
  LargestBatch best;
  for (int too_large = largest_batch_tried + 1; best.batch + 1 < too_large;) {
    const int batch = std::midpoint(best.batch, too_large);
    std::size_t bytes = std::numeric_limits<std::size_t>::max();
    try {
      bytes = at(batch).total();
    } catch (const ShapeError&) {  // beyond what a shape can hold
    }
    if (bytes <= limit)
      best = {batch, bytes, batch == largest_batch_tried};
    else
      too_large = batch;
  }
  return best;
}

}  // namespace lamina::bench
