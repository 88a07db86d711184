// Batch normalisation, optionally with an Add and a ReLU or with a function after it: binds its kernels. Per channel,
// forward saves the statistics and the exact factors of y.

#include "kernels/norm/batch_norm.h"

#include <utility>
#include <variant>

#include "lib/backends/common/unit_checks.h"
#include "lib/backends/cuda/common.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// The ops that follow, with any function.
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

template <class T>
void apply(Stream stream, const Args& args, const Tail& tail, const NormChannel<T>* channels) {
  batch_norm_apply(stream, view<const T>(args.x[0]), tail.add ? view<const T>(args.x[1]) : View<const T>(),
                   tail.function, channels, view<T>(args.y));
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

template <class T>
void emit_inference(Lowered& unit, const Spec& spec, const BatchNorm& op, const Tail& tail, Machine& machine) {
  const int count = spec.y.shape.c;
  unit.prepared_bytes = static_cast<std::size_t>(count) * sizeof(NormChannel<T>);
  const auto prepare = [op, count](Stream stream, const Args& args) {
    batch_norm_from_running(stream, count, numbers_of<T>(args, op), static_cast<NormChannel<T>*>(args.prepared));
  };
  const auto forward = [tail](Stream stream, const Args& args) {
    apply<T>(stream, args, tail, static_cast<const NormChannel<T>*>(args.prepared));
  };
  unit.steps.push_back(launches(machine, {Pass::forward}, "direct", forward));
  unit.steps.push_back(launches(machine, {Pass::prepare}, "direct", prepare));
}

template <class T>
void emit_training(Lowered& unit, const Spec& spec, const BatchNorm& op, const Tail& tail, Machine& machine) {
  const Shape& shape = spec.y.shape;
  const std::int64_t count = shape.n * shape.plane();
  unit.saved_bytes = static_cast<std::size_t>(shape.c) * sizeof(NormChannel<T>);
  const auto forward = [op, tail](Stream stream, const Args& args) {
    auto* const channels = static_cast<NormChannel<T>*>(args.saved);
    batch_norm_statistics(stream, view<const T>(args.x[0]), numbers_of<T>(args, op), channels, args.workspace);
    apply<T>(stream, args, tail, channels);
  };
  unit.steps.push_back(
      launches(machine, {Pass::forward}, "direct", forward, batch_norm_statistics_bytes(shape.c, count)));
  const auto recompute = [tail](Stream stream, const Args& args) {
    apply<T>(stream, args, tail, static_cast<const NormChannel<T>*>(args.saved));
  };
  unit.steps.push_back(launches(machine, {Pass::recompute}, "direct", recompute));
  const auto backward = [spec, tail, mask = tail.mask()](Stream stream, const Args& args) {
    const View<const T> y = mask == NormMask::from_y ? view<const T>(args.y) : View<const T>();
    batch_norm_backward(stream, mask, tail.function, view<const T>(args.x[0]), y, view<const T>(args.dy),
                        static_cast<const NormChannel<T>*>(args.saved), args.w[0].as<const Computed<T>>(),
                        gradients_of<T>(args, spec), args.workspace);
  };
  unit.steps.push_back(launches(machine, {Pass::backward_params, Pass::backward_data}, "direct", backward,
                                batch_norm_backward_bytes<T>(shape.c, count)));
}

}  // namespace

Lowered lower(const BatchNorm& op, const Spec& spec, const Choice&, Machine& machine) {
  check_whole_batch(Machine::backend_name(), op);
  const Tail tail{norm_tail(spec).add, tail_function(spec)};
  Lowered unit = norm_unit(spec, norm_tail(spec));
  with_storage(spec.y.dtype, [&]<class T>() {
    if (spec.mode == Mode::inference) {
      emit_inference<T>(unit, spec, op, tail, machine);
    } else {
      emit_training<T>(unit, spec, op, tail, machine);
    }
  });
  return unit;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
