#pragma once
// What follows a sum before it is stored.

#include <cstdint>

namespace lamina::eigen {

/// What is done to a finished sum before it is stored in c: max(scale * sum + bias + c, 0); each part is optional.
template <class T>
struct Epilogue {
  const T* scale = nullptr;  ///< one per row of c, or null
  const T* bias = nullptr;   ///< one per row of c, or null
  bool add = false;          ///< c is read and added to; otherwise it is only written
  bool relu = false;

  /// That of the rows from `row` on.
  Epilogue from(std::int64_t row) const {
    return {scale == nullptr ? nullptr : scale + row, bias == nullptr ? nullptr : bias + row, add, relu};
  }
};

}  // namespace lamina::eigen
