#pragma once
// Whole numbers in elements: labels and ids. An element may hold anything.

#include <cstdint>

namespace lamina::eigen {

constexpr std::int64_t ignored_label = -1, invalid_number = -2;

/// The whole number in [0, count) that an element holds, or invalid_number.
template <class T>
std::int64_t whole_number(T element, std::int64_t count) {
  if (!(element >= 0 && element <= static_cast<T>(count))) return invalid_number;  // also a NaN
  const auto number = static_cast<std::int64_t>(element);
  return number < count && static_cast<T>(number) == element ? number : invalid_number;
}

/// The class of a label: a whole number below `classes`, ignored_label or invalid_number.
template <class T>
std::int64_t class_of(T label, std::int64_t classes) {
  return label == T(-1) ? ignored_label : whole_number(label, classes);
}

}  // namespace lamina::eigen
