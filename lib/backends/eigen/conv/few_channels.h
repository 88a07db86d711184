#pragma once
// The data gradient where x has few channels, as the image itself has: a product per block of rows of dy, added into
// dx.
//
//   sums[(c, r, s)][(p, q)] = sum over k of w[k][c][r][s] * dy[k][p][q]
//
// The taps fill register tiles that channels alone would leave empty. Each row of the sums is then added to the
// elements of dx that its tap reads. One thread makes an image (or one channel of it) from its first row to its last,
// so that the order of the sums is fixed.

#include <cstddef>
#include <vector>

#include "conv.h"
#include "lib/backends/eigen/gemm/column_product.h"

namespace lamina::eigen {

template <class T>
class FewChannelsData {
 public:
  FewChannelsData(const ConvUnit&, int threads, const MicroKernels<T>& kernels);
  std::size_t workspace_bytes() const;
  void run(const Args&, ThreadPool&) const;

 private:
  struct Buffers {
    T* weights;  // weights of all parts: groups x (c, r, s) x k
    T* sums;
    void* product;
  };
  std::int64_t kernel() const { return std::int64_t{c_.op.kernel.h} * c_.op.kernel.w; }
  T* allocate_weights(ScratchAllocator&) const;
  Buffers allocate(ScratchAllocator&) const;
  void make_image(const Args&, std::int64_t image, int group, int first_channel, int last_channel,
                  const Buffers&) const;
  void add_sums(const Tensor& dx, std::int64_t image, int channel, int first_row, int rows, const T* sums) const;

  ConvUnit c_;
  const MicroKernels<T>* kernels_;
  int image_parts_, channel_parts_;
  int block_rows_;
  std::vector<ColumnProduct<T>> products_;  // [channels - 1 + (is the last, smaller block) * group channels]
  std::size_t product_bytes_ = 0;
};

extern template class FewChannelsData<float>;
extern template class FewChannelsData<double>;

/// Whether these products are faster than the products of strided_data_gradient.h.
bool has_few_channels(const ConvUnit&);

}  // namespace lamina::eigen
