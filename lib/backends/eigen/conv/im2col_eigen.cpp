// Convolution by columns that are written as a matrix, an image at a time, and Eigen's matrix product. Copying and the
// division among threads are ours. The products are Eigen's, each on one thread.
//
// forward          y = w * columns; threads share images and blocks of their columns
// backward_data    gradients of the columns = w^T * dy; each is added to the element of dx that it was copied from;
//                  threads share images and blocks of their channels
// backward_params  dw = dy * columns^T, added up over images in order; threads share channels and filters

#include <algorithm>

#include "conv_tail.h"
#include "lib/backends/eigen/gemm/eigen_product.h"
#include "lib/backends/eigen/gemm/gemm.h"

namespace lamina::eigen {
namespace {

constexpr std::int64_t columns_bytes = 4 << 20;  // a block of columns: with its product it fits a third-level cache

/// The size of the parts when `count` is divided into at least `parts` equal parts of at most `fit`.
std::int64_t part_size(std::int64_t count, std::int64_t fit, std::int64_t parts) {
  return divide_up(count, std::clamp(divide_up(count, fit), std::min(parts, count), count));
}

template <class T>
class EigenConv {
 public:
  EigenConv(const ConvUnit& c, Pass pass, const Context& context)
      : c_(c), pass_(pass), threads_(context.pool.threads()), tail_(c, context.set) {
    const std::int64_t fit = columns_bytes / static_cast<std::int64_t>(sizeof(T));
    channels_ = c.group_channels();
    filters_ = c.group_filters();
    columns_ = grid();
    const std::int64_t units = divide_up(threads_, std::int64_t{c.y.n} * c.op.groups);  // units of each image
    switch (pass) {
      case Pass::forward:
        columns_ = part_size(columns_, std::max<std::int64_t>(1, fit / (channels_ * taps())), units);
        break;
      case Pass::backward_params: {
        const Partition parts = partition({channels_}, filters_, threads_, 1, 1);
        channel_parts_ = parts.columns;
        channels_ = divide_up(channels_, parts.columns);
        filters_ = divide_up(filters_, parts.rows);
        columns_ = part_size(columns_, std::max<std::int64_t>(1, fit / (channels_ * taps())), 1);
        break;
      }
      default: channels_ = part_size(channels_, std::max<std::int64_t>(1, fit / (columns_ * taps())), units); break;
    }
  }

  std::size_t workspace_bytes() const { return static_cast<std::size_t>(threads_) * part_bytes(); }

  /// A term of a product is rounded at most as often as the product has terms, in whatever order they are added.
  std::int64_t roundings() const {
    switch (pass_) {
      case Pass::forward: return depth();
      case Pass::backward_params: return columns_ + c_.y.n * divide_up(grid(), columns_) - 1;
      default: return filters_ + taps() - 1;
    }
  }

  void run(const Args& args, ThreadPool& pool) const {
    if (pass_ == Pass::forward) place_addend(c_, args, pool);
    if (pass_ == Pass::backward_data && !args.dx[0]) return;
    if (pass_ == Pass::backward_params) {
      bias_gradient<T>(c_, args, pool);
      if (args.dw.empty() || !args.dw[0]) return;
    }
    const std::int64_t blocks =
        pass_ == Pass::forward ? divide_up(grid(), columns_) : divide_up(c_.group_channels(), channels_);
    const std::int64_t units = std::int64_t{c_.y.n} * c_.op.groups * blocks;
    pool.run([&](int part) {
      ScratchAllocator scratch = ScratchAllocator(args.workspace).part(part, part_bytes());
      const Buffers buffers = allocate(scratch);
      if (pass_ == Pass::backward_params) return backward_params(args, part, buffers);
      const IndexRange mine = share_of(units, 1, part, threads_);
      for (std::int64_t unit = mine.first; unit < mine.last; ++unit) {
        if (pass_ == Pass::forward) {
          forward(args, unit, buffers);
        } else {
          backward_data(args, unit, buffers);
        }
      }
    });
  }

 private:
  using Product = EigenProduct<T>;
  using Reads = typename Product::Reads;
  struct Buffers {
    T* columns;
    T* values;  // forward: y; backward: dy, where a ReLU masks it
    Product product;
  };

  std::int64_t taps() const { return std::int64_t{c_.op.kernel.h} * c_.op.kernel.w; }
  std::int64_t depth() const { return c_.group_channels() * taps(); }
  std::int64_t grid() const { return c_.y.plane(); }
  /// Whether the image itself serves as columns.
  bool in_place() const { return taps() == 1 && c_.op.stride == Size(1) && c_.op.pad == Size(0); }

  Buffers allocate(ScratchAllocator& scratch) const {
    const std::int64_t rows = channels_ * taps();
    const bool masks = pass_ != Pass::forward && c_.relu;
    Buffers buffers{scratch.take<T>(in_place() ? 0 : rows * columns_),
                    scratch.take<T>(pass_ == Pass::forward || masks ? filters_ * columns_ : 0),
                    pass_ == Pass::forward           ? Product(filters_, columns_, rows)
                    : pass_ == Pass::backward_params ? Product(filters_, rows, columns_)
                                                     : Product(rows, columns_, filters_)};
    buffers.product.allocate(scratch);
    return buffers;
  }
  std::size_t part_bytes() const {
    return allocated_bytes([&](auto& scratch) { allocate(scratch); });
  }

  /// Columns [first, first + count) of these channels of one image.
  EigenMatrix<const T> columns_of(const T* planes, std::int64_t channels, std::int64_t first, std::int64_t count,
                                  T* to) const {
    if (in_place()) return {planes + first, c_.x.plane()};
    const Conv& op = c_.op;
    T* out = to;
    for (std::int64_t channel = 0; channel < channels; ++channel, planes += c_.x.plane()) {
      for (int r = 0; r < op.kernel.h; ++r) {
        for (int s = 0; s < op.kernel.w; ++s) {
          const int right = s * op.dilation.w - op.pad.w;
          const Range inside = range_within(c_.y.w, op.stride.w, right, 0, c_.x.w);
          for (std::int64_t j = first; j < first + count;) {
            const int p = static_cast<int>(j / c_.y.w), q0 = static_cast<int>(j % c_.y.w);
            const int end = static_cast<int>(std::min<std::int64_t>(c_.y.w, q0 + first + count - j));
            const int h = p * op.stride.h - op.pad.h + r * op.dilation.h;
            const bool exists = h >= 0 && h < c_.x.h;
            const int low = exists ? std::clamp(inside.first, q0, end) : end;
            const int high = exists ? std::clamp(inside.last, low, end) : end;
            const T* const row = planes + std::int64_t{h} * c_.x.w + right;
            out = std::fill_n(out, low - q0, T{0});
            for (int q = low; q < high; ++q) *out++ = row[q * op.stride.w];
            out = std::fill_n(out, end - high, T{0});
            j += end - q0;
          }
        }
      }
    }
    return {to, count};
  }

  /// The opposite of columns_of() for a whole image: adds each element to the element that it was copied from.
  void add_columns(const T* columns, std::int64_t channels, T* planes) const {
    const Conv& op = c_.op;
    for (std::int64_t channel = 0; channel < channels; ++channel, planes += c_.x.plane()) {
      for (int r = 0; r < op.kernel.h; ++r) {
        for (int s = 0; s < op.kernel.w; ++s, columns += grid()) {
          const int right = s * op.dilation.w - op.pad.w, down = r * op.dilation.h - op.pad.h;
          const Range rows = range_within(c_.y.h, op.stride.h, down, 0, c_.x.h);
          const Range inside = range_within(c_.y.w, op.stride.w, right, 0, c_.x.w);
          for (int p = rows.first; p < rows.last; ++p) {
            const T* const from = columns + std::int64_t{p} * c_.y.w;
            T* const to = planes + std::int64_t{p * op.stride.h + down} * c_.x.w + right;
            for (int q = inside.first; q < inside.last; ++q) to[q * op.stride.w] += from[q];
          }
        }
      }
    }
  }

  /// dy of one image, through the mask if there is one.
  EigenMatrix<const T> gradient_of(const Source<T>& dy, std::int64_t first, std::int64_t count, std::int64_t filters,
                                   T* to) const {
    if (dy.mask == nullptr) return {dy.data + first, grid()};
    for (std::int64_t k = 0; k < filters; ++k) {
      const T *const from = dy.data + k * grid() + first, *const mask = dy.mask + k * grid() + first;
      for (std::int64_t j = 0; j < count; ++j) to[k * count + j] = mask[j] > 0 ? from[j] : T{0};
    }
    return {to, count};
  }

  void forward(const Args& args, std::int64_t unit, const Buffers& buffers) const {
    const std::int64_t blocks = divide_up(grid(), columns_), group = unit / blocks % c_.op.groups;
    const std::int64_t n = unit / blocks / c_.op.groups, first = unit % blocks * columns_;
    const std::int64_t count = std::min(columns_, grid() - first);
    const T* const x = args.x[0].as<T>() + n * args.x[0].pitch + group * channels_ * c_.x.plane();
    T* const y = args.y.as<T>() + n * args.y.pitch + group * filters_ * grid() + first;
    const T* const w = args.w[0].as<T>() + group * filters_ * depth();
    const Epilogue<T> epilogue = epilogue_of(c_, args, tail_).from(group * filters_);
    buffers.product.template run<Reads::straight>(filters_, count, depth(), {w, depth()},
                                                  columns_of(x, channels_, first, count, buffers.columns),
                                                  {buffers.values, count}, false);
    for (std::int64_t k = 0; k < filters_; ++k) {
      const T scale = epilogue.scale == nullptr ? T{1} : epilogue.scale[k];
      const T bias = epilogue.bias == nullptr ? T{0} : epilogue.bias[k];
      T* const to = y + k * grid();
      for (std::int64_t j = 0; j < count; ++j) {
        const T sum = buffers.values[k * count + j] * scale + bias + (epilogue.add ? to[j] : T{0});
        to[j] = epilogue.bounded(sum);
      }
      activate(epilogue, to, 0, 1, count);
    }
  }

  void backward_data(const Args& args, std::int64_t unit, const Buffers& buffers) const {
    const std::int64_t blocks = divide_up(c_.group_channels(), channels_), group = unit / blocks % c_.op.groups;
    const std::int64_t n = unit / blocks / c_.op.groups, first = unit % blocks * channels_;
    const std::int64_t count = std::min(channels_, c_.group_channels() - first);
    T* const dx = args.dx[0].as<T>() + n * args.dx[0].pitch + (group * c_.group_channels() + first) * c_.x.plane();
    const Source<T> dy = gradient_source<T>(c_, args).from(n).further(group * filters_ * grid());
    const T* const w = args.w[0].as<T>() + group * filters_ * depth() + first * taps();
    const EigenMatrix<T> to = in_place() ? EigenMatrix<T>{dx, grid()} : EigenMatrix<T>{buffers.columns, grid()};
    buffers.product.template run<Reads::a_transposed>(count * taps(), grid(), filters_, {w, depth()},
                                                      gradient_of(dy, 0, grid(), filters_, buffers.values), to,
                                                      in_place() && c_.add_dx);
    if (in_place()) return;
    if (!c_.add_dx) std::fill_n(dx, count * c_.x.plane(), T{0});
    add_columns(buffers.columns, count, dx);
  }

  void backward_params(const Args& args, int part, const Buffers& buffers) const {
    const std::int64_t c0 = part % channel_parts_ * channels_, k0 = part / channel_parts_ * filters_;
    const std::int64_t channels = std::min(channels_, c_.group_channels() - c0);
    const std::int64_t filters = std::min(filters_, c_.group_filters() - k0);
    if (channels <= 0 || filters <= 0) return;
    for (std::int64_t group = 0; group < c_.op.groups; ++group) {
      T* const dw = args.dw[0].as<T>() + (group * c_.group_filters() + k0) * depth() + c0 * taps();
      for (std::int64_t n = 0; n < c_.y.n; ++n) {
        const T* const x = args.x[0].as<T>() + n * args.x[0].pitch + (group * c_.group_channels() + c0) * c_.x.plane();
        const Source<T> dy = gradient_source<T>(c_, args).from(n).further((group * c_.group_filters() + k0) * grid());
        for (std::int64_t first = 0; first < grid(); first += columns_) {
          const std::int64_t count = std::min(columns_, grid() - first);
          buffers.product.template run<Reads::b_transposed>(
              filters, channels * taps(), count, gradient_of(dy, first, count, filters, buffers.values),
              columns_of(x, channels, first, count, buffers.columns), {dw, depth()}, c_.add_dw || n > 0 || first > 0);
        }
      }
    }
  }

  ConvUnit c_;
  Pass pass_;
  int threads_;
  ConvTail<T> tail_;
  std::int64_t channels_, filters_, columns_;  // most channels, filters and columns of one product
  int channel_parts_ = 1;                      // backward_params: the parts of the channels among threads
};

}  // namespace

Lowered::Step im2col_eigen_step(const ConvUnit& c, Pass pass, const Choice&, const Context& context) {
  return with_type(c.dtype, [&]<class T>() {
    return work_step({pass}, im2col_eigen_name, EigenConv<T>(c, pass, context), context.pool);
  });
}

double im2col_eigen_error(const ConvUnit& c, Pass pass, const Context& context) {
  const std::int64_t sum = with_type(c.dtype, [&]<class T>() { return EigenConv<T>(c, pass, context).roundings(); });
  return error_of_roundings(static_cast<double>(sum + last_roundings(c, pass)), c.dtype);
}

}  // namespace lamina::eigen
