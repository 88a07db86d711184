// The memory that a network would take.

#include "memory_prediction.h"

#include <algorithm>
#include <limits>

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
  int too_large = largest_batch_tried + 1;
  const auto fits = [&](int batch) {
    std::size_t bytes = std::numeric_limits<std::size_t>::max();
    try {
      bytes = at(batch).total();
    } catch (const ShapeError&) {  // beyond what a shape can hold
    }
    if (bytes <= limit && batch > best.batch) best = {batch, bytes, batch == largest_batch_tried};
    if (bytes > limit) too_large = std::min(too_large, batch);
    return bytes;
  };
  if (fits(1) > limit) return {};
  // Memory is nearly a straight line in the batch: aim by two points, and halve where the aim is off.
  double slope = static_cast<double>(fits(2)) - static_cast<double>(at(1).total());
  for (bool aim = true; best.batch + 1 < too_large; aim = !aim) {
    const double room = static_cast<double>(limit - best.bytes);
    double next = (best.batch + static_cast<double>(too_large)) / 2;
    if (aim && slope > 0) next = best.batch + room / slope;
    const int batch = std::clamp(static_cast<int>(std::min(next, 1e9)), best.batch + 1, too_large - 1);
    const int before = best.batch;
    const std::size_t bytes_before = best.bytes;
    if (fits(batch) <= limit && batch > before)
      slope = (static_cast<double>(best.bytes) - static_cast<double>(bytes_before)) / (batch - before);
  }
  return best;
}

}  // namespace lamina::bench
