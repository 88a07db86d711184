// Functions common to all devices: the defaults of what a device may lack, and copies between host values and tensors
// of any kind.

#include "lamina/device.h"

#include <cstdint>
#include <type_traits>
#include <vector>

#include "lamina/error.h"
#include "lib/core/numbers/float16.h"
#include "lib/core/text/enumerators.h"

namespace lamina {
namespace {

/// The bits of an element, and its conversions.
template <DType Type>
struct Float16 {
  std::uint16_t bits = 0;

  Float16() = default;
  explicit Float16(float value) : bits(narrow<Type>(value)) {}
  explicit Float16(double value) : bits(narrow(Type, value)) {}
  explicit operator float() const { return widen<Type>(bits); }
  explicit operator double() const { return static_cast<double>(widen<Type>(bits)); }
};

using Half = Float16<DType::f16>;
using BFloat16 = Float16<DType::bf16>;

void check(const char* call, std::size_t values, const Tensor& tensor) {
  if (!tensor) throw UsageError(std::string(call) + ": the tensor is null");
  if (static_cast<std::int64_t>(values) != tensor.shape.count())
    throw UsageError(std::string(call) + ": " + std::to_string(values) + " host values for a tensor of " +
                     to_string(tensor.shape) + ", which has " + std::to_string(tensor.shape.count()));
  // The text is made only for a message, because a training step uploads and must not allocate.
  if (tensor.dtype > DType::u64) check_enumerator(tensor.dtype, DType::u64, std::string(call) + ": the tensor's dtype");
  if (tensor.layout > Layout::nhwc)
    check_enumerator(tensor.layout, Layout::nhwc, std::string(call) + ": the tensor's layout");
}

template <class Function>
void with_element(const char* call, DType dtype, Function&& function) {
  switch (dtype) {
    case DType::f64: return function(double{});
    case DType::f32: return function(float{});
    case DType::f16: return function(Half{});
    case DType::bf16: return function(BFloat16{});
    case DType::u64: break;
  }
  throw UsageError(std::string(call) + ": the tensor holds u64 words; copy them with Device::" + call);
}

/// One image of a tensor on the device: where it starts and how many elements it spans, including gaps between pixels.
struct Span {
  std::int64_t first, count;
};

Span image_span(const Tensor& tensor, int n) {
  const Shape& shape = tensor.shape;
  if (tensor.layout == Layout::nchw) return {n * tensor.pitch, shape.image()};
  return {n * shape.plane() * tensor.pitch, (shape.plane() - 1) * tensor.pitch + shape.c};
}

/// Calls move(index in dense n, c, h, w order, index in the image's span) for every element of an image.
template <class Move>
void for_each_element(const Tensor& tensor, Move&& move) {
  const std::int64_t plane = tensor.shape.plane();
  if (tensor.layout == Layout::nchw) {
    for (std::int64_t i = 0; i < tensor.shape.image(); ++i) move(i, i);
  } else {
    for (std::int64_t pixel = 0; pixel < plane; ++pixel)
      for (std::int64_t c = 0; c < tensor.shape.c; ++c) move(c * plane + pixel, pixel * tensor.pitch + c);
  }
}

/// Writes the elements of one image to the start of its span.
template <class Element, class Host>
void place(Element* to, const Tensor& tensor, std::span<const Host> from, int n) {
  const Host* const image = from.data() + n * tensor.shape.image();
  for_each_element(tensor,
                   [&](std::int64_t dense, std::int64_t placed) { to[placed] = static_cast<Element>(image[dense]); });
}

template <class Host>
void upload_values(Device& device, const Tensor& to, std::span<const Host> from) {
  check("upload", from.size(), to);
  with_element("upload", to.dtype, [&]<class Element>(Element) {
    auto* const base = to.as<Element>();
    if constexpr (std::is_same_v<Element, Host>) {
      if (to.layout == Layout::nchw && to.dense()) {
        device.upload(base, from.data(), from.size_bytes());
        return;
      }
    }
    std::vector<Element> staged(static_cast<std::size_t>(image_span(to, 0).count));
    for (int n = 0; n < to.shape.n; ++n) {
      const Span span = image_span(to, n);
      const std::size_t bytes = staged.size() * sizeof(Element);
      if (to.layout == Layout::nhwc && !to.dense()) device.download(staged.data(), base + span.first, bytes);
      place(staged.data(), to, from, n);
      device.upload(base + span.first, staged.data(), bytes);
    }
  });
}

template <class Host>
void download_values(Device& device, std::span<Host> to, const Tensor& from) {
  check("download", to.size(), from);
  with_element("download", from.dtype, [&]<class Element>(Element) {
    const auto* const base = from.as<const Element>();
    if constexpr (std::is_same_v<Element, Host>) {
      if (from.layout == Layout::nchw && from.dense()) {
        device.download(to.data(), base, to.size_bytes());
        return;
      }
    }
    std::vector<Element> staged(static_cast<std::size_t>(image_span(from, 0).count));
    for (int n = 0; n < from.shape.n; ++n) {
      device.download(staged.data(), base + image_span(from, n).first, staged.size() * sizeof(Element));
      Host* const image = to.data() + n * from.shape.image();
      for_each_element(from, [&](std::int64_t dense, std::int64_t placed) {
        image[dense] = static_cast<Host>(staged[static_cast<std::size_t>(placed)]);
      });
    }
  });
}

}  // namespace

std::unique_ptr<CapturedGraph> Device::capture(const std::function<void()>&) {
  throw Unsupported("this device cannot record work and repeat it; a CUDA device can (backend cuda or cudnn)");
}

std::unique_ptr<Staging> Device::staging(std::size_t) { return nullptr; }

std::unique_ptr<SideQueue> Device::side_queue() { return nullptr; }

void Device::hold(double) { throw Unsupported("this device has no queue to hold: longest_hold() is 0"); }

void upload(Device& device, const Tensor& to, std::span<const float> from) { upload_values(device, to, from); }
void upload(Device& device, const Tensor& to, std::span<const double> from) { upload_values(device, to, from); }
void download(Device& device, std::span<float> to, const Tensor& from) { download_values(device, to, from); }
void download(Device& device, std::span<double> to, const Tensor& from) { download_values(device, to, from); }

void write_elements(void* to_host, const Tensor& tensor, std::span<const float> from) {
  check("write_elements", from.size(), tensor);
  if (!tensor.dense())
    throw UsageError("write_elements: the tensor has a pitch of " + std::to_string(tensor.pitch) +
                     "; copy to it by upload(), or take a dense tensor");
  with_element("write_elements", tensor.dtype, [&]<class Element>(Element) {
    for (int n = 0; n < tensor.shape.n; ++n)
      place(static_cast<Element*>(to_host) + image_span(tensor, n).first, tensor, from, n);
  });
}

}  // namespace lamina
