#pragma once
// The data gradient where x has few channels, for example the image itself: a product per block of rows of dy, added
// into dx.
//
//   sums[(c, r, s)][(p, q)] = sum over k of w[k][c][r][s] * dy[k][p][q]
//
// The taps fill register tiles that channels alone would leave mostly empty. Each row of the sums is then added to the
// elements of dx that its tap reads. One thread makes an image (or some channels of it) from its first row to its last,
// so that the order of the sums is fixed.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "conv.h"
#include "lib/backends/eigen/gemm/column_product.h"

namespace lamina::eigen {

/// Whether these products are faster than the products of strided_data_gradient.h.
inline bool has_few_channels(const ConvUnit& c) {
  constexpr int most_channels = 4;
  return c.group_channels() <= most_channels && c.op.kernel.h * c.op.kernel.w > 1;
}

template <class T>
class FewChannelsData {
 public:
  FewChannelsData(const ConvUnit& c, int threads, const MicroKernels<T>& kernels)
      : c_(c),
        kernels_(&kernels),
        image_parts_(std::min(threads, c.x.n)),
        channel_parts_(std::min(c.group_channels(), threads / image_parts_)) {
    const std::int64_t row = c_.group_channels() * kernel() * c_.y.w * static_cast<std::int64_t>(sizeof(T));
    block_rows_ = static_cast<int>(std::clamp<std::int64_t>(sums_bytes / row, 1, c_.y.h));
    const int rest = c_.y.h % block_rows_;
    for (const int rows : {block_rows_, rest == 0 ? block_rows_ : rest}) {
      for (int channels = 1; channels <= c_.group_channels(); ++channels) {
        products_.emplace_back(
            Columns({1, c_.group_filters(), rows, c_.y.w}, rows, c_.y.w, 1, {{0, 0}}, c_.relu, c_.y.plane()),
            channels * kernel(), 1, kernels);
        product_bytes_ = std::max(product_bytes_, products_.back().workspace_bytes());
      }
    }
  }

  std::size_t workspace_bytes() const {
    return allocated_bytes([&](auto& scratch) {
      allocate_weights(scratch);
      for (int part = 0; part < image_parts_ * channel_parts_; ++part) allocate(scratch);
    });
  }

  void run(const Args& args, ThreadPool& pool) const {
    if (!args.dx[0]) return;
    ScratchAllocator shared(args.workspace);
    T* const weights = allocate_weights(shared);
    const std::int64_t taps = c_.group_channels() * kernel(), filters = c_.group_filters();
    for (int group = 0; group < c_.op.groups; ++group) {
      kernels_->transpose(weights + group * taps * filters, filters, args.w[0].as<T>() + group * taps * filters, taps,
                          nullptr, 0, filters, taps);
    }
    const std::size_t bytes = allocated_bytes([&](auto& scratch) { allocate(scratch); });
    pool.run([&](int part) {
      if (part >= image_parts_ * channel_parts_) return;
      ScratchAllocator scratch = shared.part(part, bytes);
      Buffers buffers = allocate(scratch);
      buffers.weights = weights;
      const IndexRange images = share_of(c_.x.n, 1, part % image_parts_, image_parts_);
      const IndexRange channels = share_of(c_.group_channels(), 1, part / image_parts_, channel_parts_);
      for (std::int64_t image = images.first; image < images.last; ++image) {
        for (int group = 0; group < c_.op.groups; ++group) {
          make_image(args, image, group, static_cast<int>(channels.first), static_cast<int>(channels.last), buffers);
        }
      }
    });
  }

 private:
  static constexpr std::int64_t sums_bytes = 512 * 1024;  // sums of one block: half of a second-level cache

  struct Buffers {
    T* weights;  // weights that all parts share: groups x (c, r, s) x k
    T* sums;
    void* product;
  };
  std::int64_t kernel() const { return std::int64_t{c_.op.kernel.h} * c_.op.kernel.w; }

  T* allocate_weights(ScratchAllocator& scratch) const { return scratch.take<T>(c_.weights()); }

  Buffers allocate(ScratchAllocator& scratch) const {
    return {.weights = nullptr,
            .sums = scratch.take<T>(c_.group_channels() * kernel() * block_rows_ * c_.y.w),
            .product = scratch.take<std::byte>(static_cast<std::int64_t>(product_bytes_))};
  }

  void make_image(const Args& args, std::int64_t image, int group, int first_channel, int last_channel,
                  const Buffers& buffers) const {
    const Tensor& dx = args.dx[0];
    const int channels = last_channel - first_channel, offset = group * c_.group_channels() + first_channel;
    if (!c_.add_dx) {
      T* const to = dx.as<T>() + image * dx.pitch + offset * c_.x.plane();
      std::fill(to, to + channels * c_.x.plane(), T{0});
    }
    const std::int64_t filters = c_.group_filters();
    for (int p = 0; p < c_.y.h; p += block_rows_) {
      const int rows = std::min(block_rows_, c_.y.h - p);
      const std::int64_t columns = std::int64_t{rows} * c_.y.w;
      const std::int64_t at = group * filters * c_.y.plane() + std::int64_t{p} * c_.y.w;
      const int index = channels - 1 + (rows == block_rows_ ? 0 : c_.group_channels());
      products_[static_cast<std::size_t>(index)].run(0,
                                                     {.a = buffers.weights + offset * kernel() * filters,
                                                      .lda = filters,
                                                      .source = gradient_source<T>(c_, args).from(image).further(at),
                                                      .output = {buffers.sums, 0, columns, columns, columns, 1}},
                                                     buffers.product);
      for (int channel = 0; channel < channels; ++channel) {
        add_sums(dx, image, offset + channel, p, rows, buffers.sums + channel * kernel() * columns);
      }
    }
  }

  void add_sums(const Tensor& dx, std::int64_t image, int channel, int first_row, int rows, const T* sums) const {
    const Conv& op = c_.op;
    T* const plane = dx.as<T>() + image * dx.pitch + channel * c_.x.plane();
    for (int r = 0; r < op.kernel.h; ++r) {
      const int down = first_row * op.stride.h - op.pad.h + r * op.dilation.h;
      const Range p = range_within(rows, op.stride.h, down, 0, c_.x.h);
      for (int s = 0; s < op.kernel.w; ++s, sums += std::int64_t{rows} * c_.y.w) {
        const int right = s * op.dilation.w - op.pad.w;
        const Range q = range_within(c_.y.w, op.stride.w, right, 0, c_.x.w);
        if (p.first == p.last || q.first == q.last) continue;
        kernels_->store_tile(
            {.to = plane + std::int64_t{p.first * op.stride.h + down} * c_.x.w + q.first * op.stride.w + right,
             .ldc = std::int64_t{op.stride.h} * c_.x.w,
             .step = op.stride.w,
             .from = sums + std::int64_t{p.first} * c_.y.w + q.first,
             .ldf = c_.y.w,
             .rows = p.last - p.first,
             .count = q.last - q.first,
             .epilogue = {.add = true}});
      }
    }
  }

  ConvUnit c_;
  const MicroKernels<T>* kernels_;
  int image_parts_, channel_parts_;
  int block_rows_;
  std::vector<ColumnProduct<T>> products_;  // products by channels - 1; then those for the last, smaller block
  std::size_t product_bytes_ = 0;
};

}  // namespace lamina::eigen
