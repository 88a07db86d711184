// Convolution as matrix products whose second factor, the columns, is packed from the image block by block.
//
// forward           y = w * columns of x
// backward_data     strided_data_gradient.h; where a group has few channels, few_channels.h
// backward_params   weight_gradient_product.h

#include <cstdint>
#include <utility>

#include "conv.h"
#include "conv_tail.h"
#include "few_channels.h"
#include "lib/backends/eigen/gemm/column_product.h"
#include "strided_data_gradient.h"
#include "weight_gradient_product.h"

namespace lamina::eigen {
namespace {

Columns forward_columns(const ConvUnit& c) {
  return Columns({c.x.n, c.group_channels(), c.x.h, c.x.w}, c.y.h, c.y.w, c.op.stride, taps_of(c.op), false);
}

// ---- forward ----

template <class T>
class ForwardProduct {
 public:
  ForwardProduct(const ConvUnit& c, const Context& context, const MicroKernels<T>& kernels)
      : c_(c),
        product_(forward_columns(c), c.group_filters(), context.pool.threads(), kernels),
        tail_(c, context.set) {}

  std::size_t workspace_bytes() const {
    return product_.workspace_bytes() * static_cast<std::size_t>(product_.parts());
  }

  void run(const Args& args, ThreadPool& pool) const {
    const std::int64_t x_group = c_.group_channels() * c_.x.plane(), y_group = c_.group_filters() * c_.y.plane();
    const Epilogue<T> epilogue = epilogue_of(c_, args, tail_);
    place_addend(c_, args, pool);
    pool.run([&](int part) {
      std::byte* const workspace =
          static_cast<std::byte*>(args.workspace) + static_cast<std::size_t>(part) * product_.workspace_bytes();
      for (int g = 0; g < c_.op.groups; ++g)
        product_.run(part,
                     {.a = args.w[0].as<T>() + g * product_.rows() * product_.depth(),
                      .lda = product_.depth(),
                      .source = {args.x[0].as<T>() + g * x_group, args.x[0].pitch},
                      .output = {args.y.as<T>() + g * y_group, args.y.pitch, c_.y.plane(), c_.y.w, c_.y.w, 1},
                      .epilogue = epilogue.from(g * c_.group_filters()),
                      .non_temporal = wants_non_temporal<T>(c_.y)},
                     workspace);
    });
  }

 private:
  ConvUnit c_;
  ColumnProduct<T> product_;
  ConvTail<T> tail_;
};

// ---- errors ----

/// The roundings of a term of dx.
template <class T>
std::int64_t data_roundings(const ConvUnit& c) {
  const std::int64_t filters = c.group_filters();
  const auto depth = StridedDataGradient<T>::depth(c);
  // Few channels: a product per tap, added up where taps overlap.
  return has_few_channels(c) ? ColumnProduct<T>::roundings(filters, 1) + depth.taps : depth.roundings;
}

template <class T>
double error_of(const ConvUnit& c, Pass pass, int threads, const MicroKernels<T>& kernels) {
  const std::int64_t taps = std::int64_t{c.op.kernel.h} * c.op.kernel.w;
  const auto sum = [&] {
    switch (pass) {
      case Pass::forward: return ColumnProduct<T>::roundings(c.group_channels(), taps);
      case Pass::backward_params: return position_blocks<T>(c, forward_columns(c), threads, kernels.rows).roundings();
      default: return data_roundings<T>(c);
    }
  };
  return error_of_roundings(static_cast<double>(sum() + last_roundings(c, pass)), c.dtype);
}

template <class T>
Lowered::Step pass_step(const ConvUnit& c, Pass pass, const Context& context, const MicroKernels<T>& kernels) {
  ThreadPool& pool = context.pool;
  const auto made = [&](auto work) { return work_step({pass}, im2col_gemm_name, std::move(work), pool); };
  if (pass == Pass::forward) return made(ForwardProduct<T>(c, context, kernels));
  if (pass == Pass::backward_params)
    return made(WeightGradientProduct<T>(c, forward_columns(c), pool.threads(), kernels));
  if (has_few_channels(c)) return made(FewChannelsData<T>(c, pool.threads(), kernels));
  return made(StridedDataGradient<T>(c, pool.threads(), kernels));
}

}  // namespace

Lowered::Step im2col_gemm_step(const ConvUnit& c, Pass pass, const Choice&, const Context& context) {
  return with_type(c.dtype, [&]<class T>() { return pass_step<T>(c, pass, context, context.set.of<T>().kernels_6x2); });
}
double im2col_gemm_error(const ConvUnit& c, Pass pass, const Context& context) {
  return with_type(c.dtype, [&]<class T>() {
    return error_of<T>(c, pass, context.pool.threads(), context.set.of<T>().kernels_6x2);
  });
}

Lowered::Step im2col_gemm_on_pairs_step(const ConvUnit& c, Pass pass, const Context& context) {
  return pass_step<float>(c, pass, context, *context.set.f32_pairs);
}
double im2col_gemm_on_pairs_error(const ConvUnit& c, Pass pass, const Context& context) {
  return error_of<float>(c, pass, context.pool.threads(), *context.set.f32_pairs);
}

}  // namespace lamina::eigen
