// The gradient of a convolution's weights and bias: from partial sums to where it belongs.

#include <algorithm>

#include "weight_gradient_product.h"

namespace lamina::eigen {

/// dw[k] is a row of the partial sums.
template <class T>
void WeightGradientProduct<T>::write_straight(const Operands& operands, const Shared& shared, std::int64_t k,
                                              std::int64_t count) const {
  const std::int64_t part_size = groups_ * rows() * ld();
  for (std::int64_t f = k; f < k + count; ++f) {
    T* const to = operands.dw + f * right_;
    for (int part = 0; part < blocks_.partition.columns; ++part) {
      const T* const from = shared.partial + part * part_size + f * ld();
      const bool add = operands.add || part > 0;
      for (std::int64_t j = 0; j < right_; ++j) to[j] = add ? to[j] + from[j] : from[j];
    }
  }
}

/// dw[k] is a column of the partial sums.
template <class T>
void WeightGradientProduct<T>::write_transposed(const Operands& operands, const Shared& shared, std::int64_t k,
                                                std::int64_t count) const {
  constexpr std::int64_t side = 32;
  const std::int64_t part_size = groups_ * rows() * ld();
  T square[side * side];
  const T* const from = shared.partial + k / right_ * rows() * ld() + k % right_;
  for (std::int64_t i = 0; i < rows(); i += side) {
    const std::int64_t height = std::min(side, rows() - i);
    for (int part = 0; part < blocks_.partition.columns; ++part) {
      kernels_->transpose(square, side, from + part * part_size + i * ld(), ld(), nullptr, 0, height, count);
      const bool add = operands.add || part > 0;
      for (std::int64_t f = 0; f < count; ++f) {
        T* const to = operands.dw + (k + f) * rows() + i;
        for (std::int64_t j = 0; j < height; ++j) to[j] = add ? to[j] + square[f * side + j] : square[f * side + j];
      }
    }
  }
}

template <class T>
void WeightGradientProduct<T>::write(const Operands& operands, const Shared& shared, IndexRange filters_of_all) const {
  constexpr std::int64_t block = 32;
  for (std::int64_t k = filters_of_all.first; operands.db != nullptr && k < filters_of_all.last; ++k) {
    double sum = operands.add ? static_cast<double>(operands.db[k]) : 0.0;
    for (int part = 0; part < blocks_.partition.columns; ++part)
      sum += shared.bias_sums[part * groups_ * filters() + k];
    operands.db[k] = static_cast<T>(sum);
  }
  if (operands.dw == nullptr) return;
  for (std::int64_t k = filters_of_all.first; k < filters_of_all.last;) {
    const std::int64_t group_ends = (k / filters() + 1) * filters();
    const std::int64_t count = std::min({block, filters_of_all.last - k, group_ends - k});
    if (swapped_) {
      write_straight(operands, shared, k, count);
    } else {
      write_transposed(operands, shared, k, count);
    }
    k += count;
  }
}

template void WeightGradientProduct<float>::write_straight(const Operands&, const Shared&, std::int64_t,
                                                           std::int64_t) const;
template void WeightGradientProduct<double>::write_straight(const Operands&, const Shared&, std::int64_t,
                                                            std::int64_t) const;
template void WeightGradientProduct<float>::write_transposed(const Operands&, const Shared&, std::int64_t,
                                                             std::int64_t) const;
template void WeightGradientProduct<double>::write_transposed(const Operands&, const Shared&, std::int64_t,
                                                              std::int64_t) const;
template void WeightGradientProduct<float>::write(const Operands&, const Shared&, IndexRange) const;
template void WeightGradientProduct<double>::write(const Operands&, const Shared&, IndexRange) const;

}  // namespace lamina::eigen
