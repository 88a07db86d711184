#pragma once
// Convolutions whose groups have a vector of filters: every number of an image is multiplied by the weights of all
// filters at once. forward, and backward_data where the stride is 1, whose "filters" are the channels of x.

#include "conv.h"
#include "lib/backends/eigen/gemm/gemm.h"
#include "tap_bands.h"

namespace lamina::eigen {

/// Operands of sums over taps, and their epilogue.
template <class T>
struct TapOperands {
  Source<T> from;
  const T* w;
  Tensor to;
  Epilogue<T> epilogue;
};

template <class T>
class FilterSums {
 public:
  static bool takes(const ConvUnit&, Pass, const MicroKernels<T>&);
  FilterSums(const ConvUnit&, Pass, const MicroKernels<T>&);

  std::size_t workspace_bytes(int threads) const { return part_bytes() * static_cast<std::size_t>(threads); }
  void run(const TapOperands<T>&, ThreadPool&, void* workspace) const;

 private:
  struct Scratch {
    T* copy;
    T* weights;  // weights of a group, for each vector of filters and each tap
    T* sums;     // a vector of filters for each position of a band
    T* rows;     // sums, transposed: positions of each filter
  };
  Scratch allocate(ScratchAllocator&) const;
  std::size_t part_bytes() const {
    return allocated_bytes([&](auto& scratch) { allocate(scratch); });
  }
  std::int64_t copied_elements() const { return planes_ * bands_.largest().plane + kernels_->lanes; }
  std::int64_t room() const { return round_up(bands_.largest().rows * to_.w, kernels_->lanes); }
  void sort_weights(const T* w, std::int64_t group, T* sorted) const;
  void make_band(const TapOperands<T>&, std::int64_t image, std::int64_t group, std::size_t band, const Scratch&) const;

  const MicroKernels<T>* kernels_;
  bool forward_;
  int planes_, results_;  // planes of a group that a sum reads; planes of a group that are made
  int filters_;           // filters of a vector
  Shape to_;
  std::int64_t groups_, from_plane_, kernel_, taps_;  // kernel: taps of a plane
  TapBands bands_;
};

extern template class FilterSums<float>;
extern template class FilterSums<double>;

}  // namespace lamina::eigen
