// Shapes, element types and layouts as text and bytes.

#include "lamina/shape.h"

#include "lamina/error.h"
#include "lib/core/text/enumerators.h"

namespace lamina {

std::string to_string(const Shape& shape) {
  return std::to_string(shape.n) + 'x' + std::to_string(shape.c) + 'x' + std::to_string(shape.h) + 'x' +
         std::to_string(shape.w);
}

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return 8;
    case DType::f32: return 4;
    case DType::f16: return 2;
    case DType::bf16: return 2;
    case DType::u64: return 8;
  }
  throw UsageError("no such element type: " + std::to_string(static_cast<int>(dtype)));
}

std::string_view to_string(DType dtype) {
  return enumerator_name(dtype, "element type", {"f64", "f32", "f16", "bf16", "u64"});
}

std::string_view to_string(Layout layout) { return enumerator_name(layout, "layout", {"nchw", "nhwc"}); }

}  // namespace lamina
