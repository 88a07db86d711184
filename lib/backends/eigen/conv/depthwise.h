#pragma once
// Convolutions whose groups have one channel or few, as sums over taps along the rows of planes.
//
// forward           y at (p, q) = sum over taps of w[r][s] * x at the tap
// backward_data     the same of dy; one residue of the positions of x modulo the stride after another
// backward_params   dw[r][s] = sum over positions of dy * x at the tap
//
// Taps read copies of bands of planes. The sums of a vector are those of neighbours along a row or, where a group has a
// vector of filters (filter_sums.h), of all these filters at one position.

#include <string>

#include "conv.h"
#include "lib/backends/eigen/gemm/gemm.h"
#include "tap_bands.h"

namespace lamina::eigen {

constexpr const char* depthwise_name = "depthwise";

std::string depthwise_refusal(const ConvUnit&);
/// Whether `depthwise` is faster than im2col_gemm, as measured on layers of ResNeXt-50 and RegNetX-400MF: sums of a
/// vector of filters with AVX-512, the others with AVX2.
bool depthwise_pays(const ConvUnit&, Pass, const Context&);
Lowered::Step depthwise_step(const ConvUnit&, Pass, const Choice&, const Context&);
double depthwise_error(const ConvUnit&, Pass, const Context&);

/// dw and db.
template <class T>
class TapGradients {
 public:
  TapGradients(const ConvUnit&, const MicroKernels<T>&);
  std::size_t workspace_bytes(int threads) const { return part_bytes() * static_cast<std::size_t>(threads); }
  void run(const Args&, ThreadPool&) const;
  /// The roundings of a term in its own type, and in double.
  struct Roundings {
    std::int64_t own, in_double;
  };
  Roundings roundings() const;

 private:
  /// The sums of some groups of one thread.
  struct Sums {
    T* copy;
    T* sums;         // a vector for each weight, then for each bias
    double* totals;  // a total for each of them
    T* ones;
  };
  Sums allocate(ScratchAllocator&) const;
  std::size_t part_bytes() const {
    return allocated_bytes([&](auto& scratch) { allocate(scratch); });
  }
  /// The room for some groups, and as much more as a vector reads and writes after them.
  std::int64_t copied_elements() const {
    return groups_at_once_ * c_.group_channels() * bands_.largest().plane + kernels_->lanes;
  }
  std::int64_t group_weights() const { return c_.group_filters() * c_.filter_weights(); }
  std::int64_t group_sums() const { return group_weights() + (c_.op.bias ? c_.group_filters() : 0); }
  void add_band(const Args&, std::int64_t image, std::size_t band, std::int64_t first, std::int64_t last,
                const Sums&) const;
  void flush(std::int64_t groups, const Sums&) const;
  void store(const Args&, std::int64_t first, std::int64_t last, const Sums&) const;

  ConvUnit c_;
  const MicroKernels<T>* kernels_;
  TapBands bands_;
  std::int64_t groups_at_once_, bands_at_once_;
};

extern template class TapGradients<float>;
extern template class TapGradients<double>;

}  // namespace lamina::eigen
