#pragma once
// Extents, element types, memory layouts, and the view of a tensor.
//
// Here and in every header, an enumerator out of range is a UsageError. There are two exceptions: constexpr functions
// do not check, and Backend::algorithms returns an empty list for an unknown pass.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "lamina/api.h"

namespace lamina {

/// The extent of a tensor: always four axes.
/// A vector of k features per image is {n, k, 1, 1}; a per-channel vector is {1, c, 1, 1}.
struct Shape {
  int n = 1, c = 1, h = 1, w = 1;
  constexpr std::int64_t count() const { return std::int64_t{n} * c * h * w; }
  constexpr std::int64_t image() const { return std::int64_t{c} * h * w; }  ///< elements of one image
  constexpr std::int64_t plane() const { return std::int64_t{h} * w; }      ///< elements of one channel
  constexpr bool operator==(const Shape&) const = default;
};

LAMINA_API std::string to_string(const Shape&);  ///< "32x3x224x224"

/// The type of an element. `u64` is for counters in state; no op computes in it.
enum class DType : std::uint8_t { f64, f32, f16, bf16, u64 };

/// Whether values of the type take 16 bits.
constexpr bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

/// The order of a tensor's elements in memory. A Shape lists n, c, h, w in either layout.
enum class Layout : std::uint8_t { nchw, nhwc };

LAMINA_API std::size_t size_of(DType);          ///< bytes of one element
LAMINA_API std::string_view to_string(DType);   ///< "f32"
LAMINA_API std::string_view to_string(Layout);  ///< "nchw"

/// Elements from one image to the next (nchw) or from one pixel to the next (nhwc) in a dense tensor.
constexpr std::int64_t dense_pitch(const Shape& shape, Layout layout) {
  return layout == Layout::nchw ? shape.image() : shape.c;
}

/// A view of device memory: its address, extents and element type. Owns nothing. A null tensor means "not wanted".
struct Tensor {
  void* data = nullptr;
  Shape shape;
  DType dtype = DType::f32;
  Layout layout = Layout::nchw;
  std::int64_t pitch = 0;  ///< elements between images (nchw) or pixels (nhwc)

  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  bool dense() const { return pitch == dense_pitch(shape, layout); }
  explicit operator bool() const { return data != nullptr; }
};

}  // namespace lamina
