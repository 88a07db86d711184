#pragma once
// The steps between a sum and its store.

#include <cstdint>

namespace lamina::eigen {

/// Limits of a result: y < low becomes low, y > high becomes high, and a NaN stays.
template <class T>
struct Bounds {
  T low, high;

  T operator()(T y) const { return y < low ? low : y > high ? high : y; }
};

/// A function of rows that follows another op in its unit. The rows are in cache, and may be written in place.
template <class T>
class Activation {
 public:
  virtual ~Activation() = default;
  virtual void forward(T* y, const T* x, std::int64_t count) const = 0;
  /// dx = dy times the slope, or dx += with `adds`, where v is the x or y that the gradient reads.
  virtual void gradient(T* dx, const T* v, const T* dy, std::int64_t count, bool adds) const = 0;
  /// dx = dy times the slope at x, for at most elements_of_room elements.
  virtual void backward(T* dx, const T* x, const T* dy, std::int64_t count) const = 0;
};

/// The last step of a sum: activation(bounds(scale * sum + bias + c)) is stored in c. Each part is optional.
template <class T>
struct Epilogue {
  const T* scale = nullptr;                   ///< factor of each row of c, or null
  const T* bias = nullptr;                    ///< bias of each row of c, or null
  bool add = false;                           ///< whether c is read and added to; otherwise it is only written
  const Bounds<T>* bounds = nullptr;          ///< limits of the results; null: none
  const Activation<T>* activation = nullptr;  ///< function of the results, applied by the kernel's caller; null: none

  /// A result within the bounds, if there are any.
  T bounded(T y) const { return bounds == nullptr ? y : (*bounds)(y); }

  /// The epilogue of the rows from `row` on.
  Epilogue from(std::int64_t row) const {
    Epilogue rows = *this;
    rows.advance(row);
    return rows;
  }
  /// Moves on by this number of rows.
  void advance(std::int64_t rows) {
    if (scale != nullptr) scale += rows;
    if (bias != nullptr) bias += rows;
  }
};

template <class T>
inline constexpr Epilogue<T> no_epilogue{};

}  // namespace lamina::eigen
