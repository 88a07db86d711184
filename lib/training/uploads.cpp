// The upload of a batch while the device still computes the batches before it.

#include "uploads.h"

#include "lib/core/numbers/rounding.h"

namespace lamina::training {
namespace {

std::size_t bytes_of(const Tensor& tensor) {
  return static_cast<std::size_t>(tensor.shape.count()) * size_of(tensor.dtype);
}

}  // namespace

Uploads::Uploads(Device& device, const Tensor& samples, const Tensor& labels)
    : device_(&device), samples_(samples), labels_(labels) {
  if (!samples.dense() || !labels.dense()) return;
  for (std::unique_ptr<Staging>& staging : staging_)
    staging = device.staging(aligned(bytes_of(samples)) + bytes_of(labels));
}

void Uploads::give(std::span<const float> samples, std::span<const float> labels) {
  Staging* const staging = staging_[turn_].get();
  if (staging == nullptr) {
    upload(*device_, samples_, samples);
    upload(*device_, labels_, labels);
    return;
  }
  turn_ = (turn_ + 1) % staging_.size();
  auto* const host = static_cast<std::byte*>(staging->data());
  const std::size_t first_label = aligned(bytes_of(samples_));  // labels may be of a wider type
  write_elements(host, samples_, samples);
  write_elements(host + first_label, labels_, labels);
  staging->upload(samples_.data, 0, bytes_of(samples_));
  staging->upload(labels_.data, first_label, bytes_of(labels_));
}

}  // namespace lamina::training
