#pragma once
// Units whose values are of half precision, on a backend whose kernels compute in f32; and units in nhwc on one whose
// kernels take nchw.

#include <cstdint>
#include <string_view>

#include "lamina/backend.h"

namespace lamina {

/// What a backend gives for its units with halves. Outlives every kernel.
class HalfUnits {
 public:
  virtual ~HalfUnits() = default;
  virtual std::string_view backend() const = 0;
  /// The elements of all widened values of a chunk, at most: so many stay in cache.
  virtual std::int64_t chunk_elements() const = 0;
  /// Whether kernels of the backend read and write the unit's halves themselves. All its values have one type.
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

/// Whether any value of the unit is of f16 or bf16.
bool has_halves(const Spec&);

/// Whether all values of the unit have one type.
bool has_one_type(const Spec&);

/// The half type of the unit's values. It has some; else the type of y.
DType half_type(const Spec&);

/// The unit as it is computed: its values dense, and in f32.
Spec in_f32(Spec);

/// The unit on dense tensors of nchw.
Spec in_nchw(Spec);

/// Whether dense memory of nhwc has another order than that of nchw.
bool is_permuted(const Shape&);

/// Lowers a unit with halves, or one of f32 in nhwc (lower_halves.cpp says how).
Lowered lower_halves(const Spec&, const Choice&, HalfUnits&);

}  // namespace lamina
