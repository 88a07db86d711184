#pragma once
// Whole numbers stored as elements: labels and ids. An element may hold any value, so it is checked.

#include "launch.h"

namespace lamina::LAMINA_CUDA_SPACE {

constexpr int ignored_label = -1, invalid_number = -2;

/// The whole number from 0 to count - 1 that an element holds, or invalid_number.
template <class T>
__device__ int whole_number(T element, int count) {
  if (!(element >= 0 && element <= static_cast<T>(count))) return invalid_number;  // true for a NaN, too
  const auto number = static_cast<std::int64_t>(element);
  return number < count && static_cast<T>(number) == element ? static_cast<int>(number) : invalid_number;
}

/// The class of a label: a whole number below `classes`, ignored_label or invalid_number.
template <class T>
__device__ int class_of(T label, int classes) {
  return label == T(-1) ? ignored_label : whole_number(label, classes);
}

}  // namespace lamina::LAMINA_CUDA_SPACE
