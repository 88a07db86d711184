// Convolution by Winograd's minimal filtering: y from x; dx from dy with the filters flipped and their channels
// exchanged; dw from x and dy.

#include <utility>

#include "conv_tail.h"
#include "lib/backends/eigen/winograd/product.h"
#include "lib/backends/eigen/winograd/weight_gradient.h"

namespace lamina::eigen {
namespace {

/// The extents of a forward pass. A weight gradient reads x in the same way.
WinogradExtents forward_extents(const ConvUnit& c) {
  return {.images = c.x.n,
          .groups = c.op.groups,
          .inputs = c.group_channels(),
          .outputs = c.group_filters(),
          .in_h = c.x.h,
          .in_w = c.x.w,
          .out_h = c.y.h,
          .out_w = c.y.w,
          .pad_h = c.op.pad.h,
          .pad_w = c.op.pad.w,
          .taps = c.op.kernel.h};
}

/// The extents of a data gradient: its inputs are dy, its outputs dx.
WinogradExtents data_extents(const ConvUnit& c) {
  WinogradExtents e = forward_extents(c);
  std::swap(e.inputs, e.outputs);
  std::swap(e.in_h, e.out_h);
  std::swap(e.in_w, e.out_w);
  e.pad_h = c.op.kernel.h - 1 - e.pad_h;
  e.pad_w = c.op.kernel.w - 1 - e.pad_w;
  return e;
}

/// dy through the mask of a fused ReLU.
Planes gradient_planes(const ConvUnit& c, const Args& args) {
  Planes dy(args.dy);
  if (c.relu) {
    dy.mask = args.y.data;
    dy.mask_pitch = args.y.pitch;
  }
  return dy;
}

template <class T>
WinogradProduct<T> product_of(const ConvUnit& c, int tile, Pass pass, int threads, const MicroKernels<T>& kernels) {
  const bool data = pass == Pass::backward_data;
  return WinogradProduct<T>(data ? data_extents(c) : forward_extents(c), tile, data, threads, kernels);
}

template <class T>
Lowered::Step product_step(const ConvUnit& c, int tile, Pass pass, const Context& context,
                           const MicroKernels<T>& kernels) {
  ThreadPool& pool = context.pool;
  WinogradProduct<T> product = product_of<T>(c, tile, pass, pool.threads(), kernels);
  const bool prepared = c.inference && product.keeps_filters();
  const std::size_t bytes = product.workspace_bytes(prepared);
  return step(
      {pass}, winograd_name(tile),
      [c, data = pass == Pass::backward_data, prepared, &pool, product = std::move(product),
       tail = ConvTail<T>(c, context.set)](const Args& args) {
        const Tensor& to = data ? args.dx[0] : args.y;
        if (!to) return;
        if (!data) place_addend(c, args, pool);
        product.run(pool,
                    {.w = args.w[0].as<T>(),
                     .prepared = prepared ? static_cast<const T*>(args.prepared) + fold_elements<T>(c) : nullptr,
                     .source = data ? gradient_planes(c, args) : Planes(args.x[0]),
                     .to = Planes(to),
                     .epilogue = data ? Epilogue<T>{.add = c.add_dx} : epilogue_of(c, args, tail)},
                    args.workspace);
      },
      bytes);
}

template <class T>
Lowered::Step params_step(const ConvUnit& c, int tile, ThreadPool& pool, const MicroKernels<T>& kernels) {
  WinogradWeightGradient<T> gradient(forward_extents(c), tile, pool.threads(), kernels);
  const std::size_t bytes = gradient.workspace_bytes();
  return step(
      {Pass::backward_params}, winograd_name(tile),
      [c, &pool, gradient = std::move(gradient)](const Args& args) {
        gradient.run(pool,
                     {.x = Planes(args.x[0]),
                      .dy = gradient_planes(c, args),
                      .dw = args.dw.empty() ? nullptr : args.dw[0].as<T>(),
                      .db = args.dw.size() < 2 ? nullptr : args.dw[1].as<T>(),
                      .add = c.add_dw},
                     args.workspace);
      },
      bytes);
}

}  // namespace

bool winograd_pays(const ConvUnit& c) {
  // A transformed filter that serves few tiles takes longer to read than it saves.
  const std::int64_t tiles = c.y.n * divide_up(c.y.h, 4) * divide_up(c.y.w, 4);
  const int least = c.op.kernel.h == 5 ? 16 : 24;
  return c.dtype == DType::f32 && c.group_channels() >= least && c.group_filters() >= least && tiles >= 8;
}

Lowered::Step winograd_step(const ConvUnit& c, int tile, Pass pass, const Context& context) {
  return with_type(c.dtype, [&]<class T>() {
    const MicroKernels<T>& kernels = context.set.of<T>().kernels;
    if (pass == Pass::backward_params) return params_step<T>(c, tile, context.pool, kernels);
    return product_step<T>(c, tile, pass, context, kernels);
  });
}

Prepared winograd_prepare(const ConvUnit& c, int tile, const Context& context) {
  return with_type(c.dtype, [&]<class T>() {
    ThreadPool& pool = context.pool;
    auto product = product_of<T>(c, tile, Pass::forward, pool.threads(), context.set.of<T>().kernels);
    const std::int64_t before = fold_elements<T>(c);
    const std::int64_t filters = product.keeps_filters() ? product.prepared_count() : 0;
    return Prepared{
        static_cast<std::size_t>(before + filters) * sizeof(T),
        step({Pass::prepare}, winograd_name(tile), [c, &pool, product = std::move(product), before](const Args& args) {
          if (c.folded) fold<T>(c, args);
          T* const prepared = static_cast<T*>(args.prepared);
          if (product.keeps_filters())
            product.prepare(pool, args.w[0].as<T>(), c.folded ? prepared : nullptr, prepared + before);
        })};
  });
}

}  // namespace lamina::eigen
