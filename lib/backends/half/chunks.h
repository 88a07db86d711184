#pragma once
// How a unit with halves is computed: in chunks of images, so that what is converted of a chunk stays in cache.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "half.h"
#include "lib/core/text/one_of.h"
#include "lib/core/units/scratch_allocator.h"

namespace lamina {

/// The parts that a unit is computed in: each has `extent` images, a multiple of `grain` where the batch is one.
struct Chunks {
  int count = 1, extent = 0;

  /// `copies`: values are copied, and not read where they are.
  Chunks(const Spec& spec, bool copies, const HalfUnits& units, int grain = 1) : extent(spec.y.shape.n) {
    if (!copies || std::visit(NeedsAllImages{}, spec.op)) return;
    std::int64_t elements = 0;
    const auto add = [&](const TensorSpec& value) {
      if (is_half(value.dtype) || value.layout == Layout::nhwc) elements += value.shape.count();
    };
    std::for_each(spec.x.begin(), spec.x.end(), add);
    add(spec.y);
    const int all = extent, least = all % grain == 0 ? grain : 1;
    const auto divides = [&] { return all % extent == 0 && extent % least == 0; };
    while (extent > least && (!divides() || elements / all * extent > units.chunk_elements())) --extent;
    count = all / extent;
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

 private:
  struct NeedsAllImages {
    bool operator()(
        const OneOf<SoftmaxCrossEntropy, SigmoidCrossEntropy, BatchNorm, Dropout, Embedding, Lstm> auto&) const {
      return true;
    }
    bool operator()(const auto& /*an image at a time*/) const { return false; }
  };
};

/// The unit of one chunk.
Spec spec_of_chunk(Spec, const Chunks&);

/// The bound of a step on halves, from that of its kernel. All bounds are relative to the sum of |terms|.
///
/// The numbers that are read are exact. What is written is rounded once, by at most u of itself: (1 + e)(1 + u) - 1.
/// A parameter's gradient stays in f32, and is added up over the chunks: a rounding for each but the first.
double half_error(double error, const Lowered::Step&, DType values, int chunks);

}  // namespace lamina
