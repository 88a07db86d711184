#pragma once
// What follows a sum before it is stored.

#include <cstdint>

namespace lamina::eigen {

/// The last step of a sum: max(scale * sum + bias + c, 0) is stored in c. Each part is optional.
template <class T>
struct Epilogue {
  const T* scale = nullptr;  ///< one per row of c, or null
  const T* bias = nullptr;   ///< one per row of c, or null
  bool add = false;          ///< c is read and added to; otherwise it is only written
  bool relu = false;

  /// The epilogue of the rows from `row` on.
  Epilogue from(std::int64_t row) const {
    return {scale == nullptr ? nullptr : scale + row, bias == nullptr ? nullptr : bias + row, add, relu};
  }
};

}  // namespace lamina::eigen
