#pragma once
// Units whose kernels run on copies of the values: f32 copies of values in half precision, or nchw copies of values in
// nhwc.

#include <cstdint>
#include <string>
#include <string_view>

#include "lamina/backend.h"
#include "lib/core/units/scratch_allocator.h"

namespace lamina {

/// The functions of a backend for its units on copies: a second base of its class. Outlives every kernel.
class MixedPrecisionLowering {
 public:
  virtual ~MixedPrecisionLowering() = default;
  virtual std::string_view backend() const = 0;  ///< the name that messages begin with
  /// Largest number of elements in all copied values of a chunk, so that they stay in cache.
  virtual std::int64_t chunk_elements() const = 0;
  /// Whether kernels of the backend read and write the unit's halves directly. Asked only if all values of the unit
  /// have one type. False for an op with a table: Algorithm::takes answers for each of its rows.
  virtual bool takes_halves(const Spec&) const = 0;
  /// Whether kernels of the backend take the unit in nhwc. If not, the unit is computed on copies in nchw.
  virtual bool takes_nhwc(const Spec&) const { return true; }
  /// Lowers a unit whose types and layout the kernels take. Error bounds leave out the rounding to halves.
  virtual Lowered lower_directly(const Spec&, const Choice&) const = 0;
  /// Copies between tensors of one shape and any pitches, on the device's queue: halves to f32, or f32 to halves.
  /// Rounds to nearest, ties to even; keeps infinities and NaNs. If the backend does not take nhwc, the layouts may
  /// differ, and the types may be the same: f32 or a half type.
  virtual void convert(const Tensor& to, const Tensor& from) const = 0;
};

/// The unit as messages name it: "eigen: conv(64, 3x3)".
std::string unit_text(const Spec&, const MixedPrecisionLowering&);

/// Whether any value of the unit is of f16 or bf16.
bool has_halves(const Spec&);

/// Whether all values of the unit have one type.
bool has_one_type(const Spec&);

/// The half type of the unit's values, or the type of y if no value has a half type.
DType half_type(const Spec&);

/// The unit with its values of half precision as dense values of f32.
Spec in_f32(Spec);

/// Whether dense nhwc memory differs in order from dense nchw memory.
bool is_permuted(const Shape&);

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

/// The form in which a backend's kernels take a unit.
struct ComputeType {
  bool types = false;  ///< whether kernels take the types of the unit; if not, they take f32
  bool nchw = false;   ///< whether nhwc values are copied to nchw
  /// Whether copies keep the order of nhwc. Only for a fully connected op, where x and w both have that order.
  bool keeps_order = false;

  bool copies() const { return !types || nchw; }
  DType type(DType dtype) const { return is_half(dtype) && !types ? DType::f32 : dtype; }
  bool copies(const TensorSpec&, std::int64_t pitch) const;
  Spec of(Spec) const;
};

/// A unit on copies of the tensors that its kernels do not take directly.
class OnCopies {
 public:
  OnCopies(const Spec&, const MixedPrecisionLowering&);

  const Spec& part() const { return part_; }  ///< the unit of one chunk, as the kernels take it
  /// Whether parameter gradients are summed over several chunks: steps of later chunks add to those of the first.
  bool sums_chunks() const;
  /// The limits that are left for the kernels. Throws Unsupported for an error limit below the error of one rounding.
  Choice left_of(const Choice&) const;
  /// The error bound of a pass, from the bound of its kernel.
  double error(double of_kernel, Pass) const;
  /// The unit's step from two steps of its part: `first` for the first chunk, `later` for the others. `part` has the
  /// flags of the part and the sizes of its blocks.
  Lowered::Step step(const Lowered& part, Lowered::Step first, const Lowered::Step& later) const;
  /// The flags of the unit and the sizes of its blocks, from the flags and sizes of its part.
  Lowered unit(Lowered part) const;

 private:
  Spec spec_;
  const MixedPrecisionLowering& units_;
  ComputeType form_;
  Chunks chunks_;
  Spec part_;
};

/// Lowers a unit on copies, for ops without a table of algorithms.
Lowered lower_on_copies(const Spec&, const Choice&, const MixedPrecisionLowering&);

}  // namespace lamina
