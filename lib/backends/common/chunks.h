#pragma once
// Chunks of images. A unit on copies is computed chunk by chunk, so that the copies of a chunk stay in cache.

#include <cstddef>
#include <cstdint>

#include "lamina/backend.h"
#include "lib/core/units/scratch_allocator.h"

namespace lamina {

/// A unit is computed in `count` chunks of `extent` images each.
struct Chunks {
  int count = 1, extent = 0;

  explicit Chunks(int images) : extent(images) {}

  /// Makes the fewest equal chunks of at most `most` elements each; all images together have `elements`. If `grain`
  /// divides `images`, it divides `extent` too. A chunk of the least extent, 1 or `grain`, may have more elements.
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

  /// Each chunk has a block of `bytes`; blocks follow each other. The size of all blocks, and the block of chunk k.
  std::size_t all_blocks(std::size_t bytes) const { return static_cast<std::size_t>(count) * aligned(bytes); }
  static void* block(void* all, std::size_t bytes, int k) {
    return all == nullptr ? nullptr : static_cast<std::byte*>(all) + static_cast<std::size_t>(k) * aligned(bytes);
  }
};

/// The error bound of a pass on halves, from the bound of its kernel. All bounds are relative to the sum of |terms|.
///
/// Reads are exact. Each written number is rounded once, by at most u of itself: the kernel's bound e becomes
/// (1 + e)(1 + u) - 1. Parameter gradients stay in f32 and are summed over the chunks: one rounding for each chunk
/// after the first.
double half_error(double error, Pass, DType values, int chunks);

}  // namespace lamina
