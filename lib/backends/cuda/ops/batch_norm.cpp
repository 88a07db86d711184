// Batch normalisation, alone or followed by an Add, an Add and a ReLU, or a function: binds its kernels. Forward saves
// the statistics of each channel and the exact factors of y.

#include "kernels/norm/batch_norm.h"

#include "lib/backends/common/unit_checks.h"
#include "lib/backends/cuda/common.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// The ops that follow the batch norm: an Add, and a function such as ReLU.
struct Tail {
  bool add;
  PointwiseFunction function;

  NormMask mask() const {
    if (function.name == PointwiseFunction::none) return NormMask::none;
    if (function.name != PointwiseFunction::relu) return NormMask::function;
    return add ? NormMask::from_y : NormMask::from_x;
  }
};

template <class T>
NormNumbers<T> numbers_of(const Args& args, const BatchNorm& op) {
  return {.scale = args.w[0].as<const Computed<T>>(),
          .shift = args.w[1].as<const Computed<T>>(),
          .running_mean = args.state[0].as<Computed<T>>(),
          .running_variance = args.state[1].as<Computed<T>>(),
          .epsilon = op.epsilon,
          .momentum = op.momentum};
}

/// Computes y from x and from the numbers of the channels, which are saved or prepared.
template <class T>
void apply(Stream stream, const Args& args, const Tail& tail, const void* channels) {
  batch_norm_apply(stream, view<const T>(args.x[0]), tail.add ? view<const T>(args.x[1]) : View<const T>(),
                   tail.function, static_cast<const NormChannel<T>*>(channels), view<T>(args.y));
}

template <class T>
NormGradients<T> gradients_of(const Args& args, const Spec& spec) {
  const auto dw = [&](std::size_t i) { return i < args.dw.size() ? args.dw[i].as<Computed<T>>() : nullptr; };
  return {.dx = wanted(args, 0) ? view<T>(args.dx[0]) : View<T>(),
          .dother = wanted(args, 1) ? view<T>(args.dx[1]) : View<T>(),
          .adds_dx = adds_dx(spec, 0),
          .adds_dother = adds_dx(spec, 1),
          .dscale = dw(0),
          .dshift = dw(1),
          .adds_dw = spec.adds_dw};
}

}  // namespace

Lowered lower(const BatchNorm& op, const Spec& spec, const Choice&, Machine& machine) {
  check_whole_batch(machine.backend, op);
  const Tail tail{norm_tail(spec).add, tail_function(spec)};
  const int channels = spec.y.shape.c;
  const std::int64_t count = spec.y.shape.n * spec.y.shape.plane();
  Lowered unit = norm_unit(spec, norm_tail(spec));
  const auto add = [&](std::vector<Pass> passes, const auto& function, std::size_t workspace_bytes = 0) {
    unit.steps.push_back(launches(machine, std::move(passes), "direct", function, workspace_bytes));
  };
  with_storage(machine.backend, spec.y.dtype, [&]<class T>() {
    const std::size_t bytes = static_cast<std::size_t>(channels) * sizeof(NormChannel<T>);
    if (spec.mode == Mode::inference) {
      unit.prepared_bytes = bytes;
      add({Pass::forward}, [tail](Stream stream, const Args& args) { apply<T>(stream, args, tail, args.prepared); });
      add({Pass::prepare}, [op, channels](Stream stream, const Args& args) {
        batch_norm_from_running(stream, channels, numbers_of<T>(args, op), static_cast<NormChannel<T>*>(args.prepared));
      });
      return;
    }
    unit.saved_bytes = bytes;
    const auto recompute = [tail](Stream stream, const Args& args) { apply<T>(stream, args, tail, args.saved); };
    const auto forward = [op, recompute](Stream stream, const Args& args) {
      batch_norm_statistics(stream, view<const T>(args.x[0]), numbers_of<T>(args, op),
                            static_cast<NormChannel<T>*>(args.saved), args.workspace);
      recompute(stream, args);
    };
    add({Pass::forward}, forward, channel_sums_bytes(channels, count));
    add({Pass::recompute}, recompute);
    const auto backward = [spec, tail, mask = tail.mask()](Stream stream, const Args& args) {
      const View<const T> y = mask == NormMask::from_y ? view<const T>(args.y) : View<const T>();
      batch_norm_backward(stream, mask, tail.function, view<const T>(args.x[0]), y, view<const T>(args.dy),
                          static_cast<const NormChannel<T>*>(args.saved), args.w[0].as<const Computed<T>>(),
                          gradients_of<T>(args, spec), args.workspace);
    };
    add({Pass::backward_params, Pass::backward_data}, backward, batch_norm_backward_bytes<T>(channels, count));
  });
  return unit;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
