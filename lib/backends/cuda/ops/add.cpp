// y = the sum of the inputs, or f(sum) if the unit's tail has a function f. The gradient of every input is dy or, with
// a function, dy f'(sum), which is computed from y. If there are more inputs than one launch adds, further launches add
// the rest to y.

#include "kernels/add.h"

#include <vector>

#include "lib/backends/cuda/common.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

template <class T>
void forward(Stream stream, const Args& args, const PointwiseFunction& f) {
  const View<T> y = elements<T>(args.y);
  Operands<const T> x;
  for (const Tensor& tensor : args.x) {
    if (x.count == most_addends) {
      add_forward(stream, x, y, {});
      x.views[0] = elements<const T>(args.y);
      x.count = 1;
    }
    x.views[x.count++] = elements<const T>(tensor);
  }
  add_forward(stream, x, y, f);
}

template <class T>
void backward(Stream stream, const Args& args, const std::vector<bool>& adds, const PointwiseFunction& f) {
  const bool plain = f.name == PointwiseFunction::none;
  const View<const T> y = !plain ? elements<const T>(args.y) : View<const T>();
  Operands<T> dx;
  for (std::size_t i = 0; i < args.dx.size(); ++i) {
    if (!args.dx[i] || (plain && !adds[i] && same_place(args.dx[i], args.dy))) continue;
    if (dx.count == most_addends) {
      add_backward(stream, elements<const T>(args.dy), y, f, dx);
      dx.count = 0;
    }
    dx.adds[dx.count] = adds[i];
    dx.views[dx.count++] = elements<T>(args.dx[i]);
  }
  if (dx.count > 0) add_backward(stream, elements<const T>(args.dy), y, f, dx);
}

}  // namespace

Lowered lower(const Add&, const Spec& spec, const Choice&, Machine& machine) {
  const PointwiseFunction f = tail_function(spec);
  const bool one_launch = spec.x.size() <= most_addends;  // one launch reads all inputs before it writes
  Lowered unit = empty_unit(spec);
  std::vector<bool> adds(spec.x.size());
  for (std::size_t i = 0; i < spec.x.size(); ++i) {
    unit.y_may_alias_x[i] = one_launch && same_pitch(spec, i);
    unit.dx_is_dy[i] = one_launch && spec.tail.empty();
    unit.dx_may_alias_dy[i] = one_launch && same_gradient_pitch(spec, i);
    adds[i] = adds_dx(spec, i);
  }
  unit.backward_reads_y = !spec.tail.empty();
  return with_storage(machine.backend, spec.y.dtype, [&]<class T>() {
    return with_launches(
        unit, spec, machine, [f](Stream stream, const Args& args) { forward<T>(stream, args, f); },
        [adds, f](Stream stream, const Args& args) { backward<T>(stream, args, adds, f); });
  });
}

}  // namespace lamina::LAMINA_CUDA_SPACE
