#pragma once
// Units that a backend's kernels do not take as they are: with values of half precision, on kernels that compute in
// f32, or in nhwc, on kernels that take nchw. They run on copies.

#include <cstdint>
#include <string>
#include <string_view>

#include "chunks.h"
#include "lamina/backend.h"

namespace lamina {

/// What a backend gives for its units on copies. Outlives every kernel.
class MixedPrecisionLowering {
 public:
  virtual ~MixedPrecisionLowering() = default;
  virtual std::string_view backend() const = 0;
  /// The most elements that all widened values of a chunk have together, so that they stay in cache.
  virtual std::int64_t chunk_elements() const = 0;
  /// Whether kernels of the backend read and write the unit's halves themselves. All its values have one type. False
  /// where the op has a table: there each row says so (algorithms.h).
  virtual bool takes_halves(const Spec&) const = 0;
  /// Whether they take the unit in nhwc. Else it is computed on copies in nchw.
  virtual bool takes_nhwc(const Spec&) const { return true; }
  /// Lowers a unit of f32, or one that takes halves, in a layout that it takes. Error bounds are those of its
  /// arithmetic in f32.
  virtual Lowered lower(const Spec&, const Choice&) = 0;
  /// Copies between tensors of one shape and any pitches, on the device's queue: halves to f32, f32 to halves. Rounds
  /// to the nearest, ties to even; infinities and NaNs are kept. Where units are not taken in nhwc, the layouts may
  /// differ and the types may be one, a half or f32.
  virtual void convert(const Tensor& to, const Tensor& from) = 0;
};

/// The unit as messages name it: "eigen: conv 64 3x3".
std::string unit_text(const Spec&, const MixedPrecisionLowering&);

/// Whether any value of the unit is of f16 or bf16.
bool has_halves(const Spec&);

/// Whether all values of the unit have one type.
bool has_one_type(const Spec&);

/// The half type of the unit's values. It has some; else the type of y.
DType half_type(const Spec&);

/// The unit as it is computed: its values dense, and in f32.
Spec in_f32(Spec);

/// Whether dense memory of nhwc has another order than that of nchw.
bool is_permuted(const Shape&);

/// How the kernels of a backend take a unit.
struct ComputeType {
  bool types = false;  ///< its types as they are; else in f32
  bool nchw = false;   ///< in nchw what is nhwc
  /// x and w keep the order of nhwc. A fully connected op may do so, since both have it.
  bool keeps_order = false;

  bool copies() const { return !types || nchw; }
  DType type(DType dtype) const { return is_half(dtype) && !types ? DType::f32 : dtype; }
  bool copies(const TensorSpec&, std::int64_t pitch) const;
  Spec of(Spec) const;
};

/// A unit on copies of what its kernels do not take as it is.
class OnCopies {
 public:
  OnCopies(const Spec&, MixedPrecisionLowering&);

  const Spec& part() const { return part_; }  ///< the unit of one chunk, as the kernels take it
  /// Whether parameters' gradients are summed over several chunks: the steps of later ones add to those of the first.
  bool sums_chunks() const;
  /// What a choice for the unit leaves to the kernels. Throws Unsupported for a limit of error below one rounding.
  Choice left_of(const Choice&) const;
  /// The bound of a pass, from that of its kernel.
  double error(double of_kernel, Pass) const;
  /// The step of the unit from one of its part: `later` is that of the chunks after the first. `part` has the flags of
  /// the part, and the sizes of its blocks.
  Lowered::Step step(const Lowered& part, Lowered::Step first, const Lowered::Step& later) const;
  /// The flags of the unit and the sizes of its blocks, from those of its part.
  Lowered unit(Lowered part) const;

 private:
  Spec spec_;
  MixedPrecisionLowering& units_;
  ComputeType form_;
  Chunks chunks_;
  Spec part_;
};

/// Lowers a unit whose op has no table of algorithms on copies.
Lowered lower_on_copies(const Spec&, const Choice&, MixedPrecisionLowering&);

}  // namespace lamina
