#pragma once
// The upload of a batch while the device still computes the batches before it.

#include <array>
#include <memory>
#include <span>

#include "lamina/device.h"

namespace lamina::training {

/// Copies samples and labels to their tensors, in the order of the device's queue. If the device has staging memory,
/// the host goes on at once. It is at most two batches ahead: it waits before it writes to memory that is still read.
class Uploads {
 public:
  Uploads(Device&, const Tensor& samples, const Tensor& labels);
  void give(std::span<const float> samples, std::span<const float> labels);

 private:
  Device* device_;
  Tensor samples_, labels_;
  std::array<std::unique_ptr<Staging>, 2> staging_;  // two buffers, used in turns; null: an upload waits
  std::size_t turn_ = 0;
};

}  // namespace lamina::training
