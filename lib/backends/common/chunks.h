#pragma once
// How a unit on copies is computed: in chunks of images, so that what is converted of a chunk stays in cache.

#include <cstddef>
#include <cstdint>

#include "lamina/backend.h"
#include "lib/core/units/scratch_allocator.h"

namespace lamina {

/// The parts that a unit is computed in: each has `extent` images.
struct Chunks {
  int count = 1, extent = 0;

  explicit Chunks(int images) : extent(images) {}

  /// As few chunks as have at most `most` of all these elements each. Their extent is a multiple of `grain` where the
  /// number of images is one.
  Chunks(int images, std::int64_t elements, std::int64_t most, int grain = 1) : extent(images) {
    const int least = images % grain == 0 ? grain : 1;
    const auto divides = [&] { return images % extent == 0 && extent % least == 0; };
    while (extent > least && (!divides() || elements / images * extent > most)) --extent;
    count = images / extent;
  }

  Shape shape(Shape all) const {
    if (count > 1) all.n = extent;
    return all;
  }

  /// The part of a value or a gradient that belongs to chunk k.
  Tensor part(Tensor tensor, int k) const {
    tensor.shape = shape(tensor.shape);
    const std::int64_t image = tensor.pitch * (tensor.layout == Layout::nhwc ? tensor.shape.plane() : 1);
    if (tensor)
      tensor.data = tensor.as<std::byte>() + k * extent * image * static_cast<std::int64_t>(size_of(tensor.dtype));
    return tensor;
  }

  /// A block of so many bytes for each chunk, one after the other: of all, and of chunk k.
  std::size_t all_blocks(std::size_t bytes) const { return static_cast<std::size_t>(count) * aligned(bytes); }
  static void* block(void* all, std::size_t bytes, int k) {
    return all == nullptr ? nullptr : static_cast<std::byte*>(all) + static_cast<std::size_t>(k) * aligned(bytes);
  }
};

/// The bound of a pass on halves, from that of its kernel. All bounds are relative to the sum of |terms|.
///
/// The numbers that are read are exact. What is written is rounded once, by at most u of itself: (1 + e)(1 + u) - 1.
/// A parameter's gradient stays in f32, and is added up over the chunks: a rounding for each but the first.
double half_error(double error, Pass, DType values, int chunks);

}  // namespace lamina
