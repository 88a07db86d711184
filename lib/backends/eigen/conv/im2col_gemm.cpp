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
Lowered::Step forward_step(const ConvUnit& c, const Context& context, const MicroKernels<T>& kernels) {
  ThreadPool& pool = context.pool;
  ColumnProduct<T> product(forward_columns(c), c.group_filters(), pool.threads(), kernels);
  const std::size_t part_bytes = product.workspace_bytes();
  const std::size_t bytes = part_bytes * static_cast<std::size_t>(product.parts());
  return step(
      {Pass::forward}, im2col_gemm_name,
      [c, &pool, product = std::move(product), part_bytes, tail = ConvTail<T>(c, context.set)](const Args& args) {
        const std::int64_t x_group = c.group_channels() * c.x.plane(), y_group = c.group_filters() * c.y.plane();
        const Epilogue<T> epilogue = epilogue_of(c, args, tail);
        place_addend(c, args, pool);
        pool.run([&](int part) {
          void* const workspace = static_cast<std::byte*>(args.workspace) + static_cast<std::size_t>(part) * part_bytes;
          for (int g = 0; g < c.op.groups; ++g) {
            product.run(part,
                        {.a = args.w[0].as<T>() + g * product.rows() * product.depth(),
                         .lda = product.depth(),
                         .source = {args.x[0].as<T>() + g * x_group, args.x[0].pitch},
                         .output = {args.y.as<T>() + g * y_group, args.y.pitch, c.y.plane(), c.y.w, c.y.w, 1},
                         .epilogue = epilogue.from(g * c.group_filters()),
                         .non_temporal = wants_non_temporal<T>(c.y)},
                        workspace);
          }
        });
      },
      bytes);
}

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
  switch (pass) {
    case Pass::forward: return forward_step<T>(c, context, kernels);
    case Pass::backward_params: {
      WeightGradientProduct<T> gradient(c, forward_columns(c), pool.threads(), kernels);
      return work_step({pass}, im2col_gemm_name, std::move(gradient), pool);
    }
    default:
      if (!has_few_channels(c))
        return work_step({pass}, im2col_gemm_name, StridedDataGradient<T>(c, pool.threads(), kernels), pool);
      return work_step({pass}, im2col_gemm_name, FewChannelsData<T>(c, pool.threads(), kernels), pool);
  }
}

}  // namespace

Lowered::Step im2col_gemm_step(const ConvUnit& c, Pass pass, const Choice&, const Context& context) {
  return with_type(c.dtype, [&]<class T>() { return pass_step<T>(c, pass, context, context.set.kernels_6x2<T>()); });
}
double im2col_gemm_error(const ConvUnit& c, Pass pass, const Context& context) {
  return with_type(
      c.dtype, [&]<class T>() { return error_of<T>(c, pass, context.pool.threads(), context.set.kernels_6x2<T>()); });
}

Lowered::Step im2col_gemm_on_pairs_step(const ConvUnit& c, Pass pass, const Context& context) {
  return pass_step<float>(c, pass, context, *context.set.f32_pairs);
}
double im2col_gemm_on_pairs_error(const ConvUnit& c, Pass pass, const Context& context) {
  return error_of<float>(c, pass, context.pool.threads(), *context.set.f32_pairs);
}

}  // namespace lamina::eigen
