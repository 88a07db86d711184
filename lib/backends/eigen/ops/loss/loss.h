#pragma once
// Shared by the losses: the mean loss and the accuracy, from the losses of rows.

#include <cstdint>

#include "lib/backends/eigen/runtime/elements.h"

namespace lamina::eigen {

/// The loss of one row, or of several rows.
struct RowLoss {
  double loss = 0;
  std::int64_t right = 0, count = 0;  ///< right rows, and all rows; ignored rows do not count
};

/// y = {mean loss, share of right rows}, summed in order. Returns 1 / (number of rows that count), or 0 if none counts.
template <class T>
T put_loss(const Tensor& y, const RowLoss* rows, std::int64_t count) {
  RowLoss sum;
  for (std::int64_t i = 0; i < count; ++i) {
    sum.loss += rows[i].loss;
    sum.right += rows[i].right;
    sum.count += rows[i].count;
  }
  const auto counted = static_cast<double>(sum.count);
  y.as<T>()[0] = sum.count == 0 ? T(0) : static_cast<T>(sum.loss / counted);
  y.as<T>()[1] = sum.count == 0 ? T(0) : static_cast<T>(static_cast<double>(sum.right) / counted);
  return sum.count == 0 ? T(0) : static_cast<T>(1 / counted);
}

}  // namespace lamina::eigen
