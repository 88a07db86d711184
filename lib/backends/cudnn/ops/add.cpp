// y = sum of the inputs. Every input's gradient is dy itself. In the backend cudnn-graph a ReLU may follow: then every
// gradient is the masked dy.

#include "lib/backends/cudnn/graph/unit_engines.h"
#include "lib/backends/cudnn/library/common.h"
#include "tail.h"

namespace lamina::cudnn {
namespace {

struct Sum : Calls {
  OpTensorDescriptor add;
  std::vector<TensorDescriptor> x, dx;
  TensorDescriptor y, dy;
  std::vector<bool> adds;
  bool relu;
  Tail tail;

  Sum(const Spec& spec, Session& in)
      : Calls(in, spec.y.dtype),
        add(api),
        y(describe_value(api, spec.y)),
        dy(describe_gradient(api, spec.y)),
        relu(ends_in_relu(spec)),
        tail(spec, in) {
    LAMINA_CUDNN(api, SetOpTensorDescriptor, add.get(), op_tensor_add, compute_type_of(dtype), nan::propagate);
    for (std::size_t i = 0; i < spec.x.size(); ++i) {
      x.push_back(describe_value(api, spec.x[i]));
      dx.push_back(describe_gradient(api, spec.x[i]));
      adds.push_back(adds_dx(spec, i));
    }
  }

  void forward(const Args& args) const {
    // The library lets y alias the first operand. It does not let y alias only the second.
    const std::size_t first = args.x[1].data == args.y.data ? 1 : 0, second = 1 - first;
    LAMINA_CUDNN(api, OpTensor, session.handle(), add.get(), one(dtype), x[first].get(), args.x[first].data, one(dtype),
                 x[second].get(), args.x[second].data, zero(dtype), y.get(), args.y.data);
    for (std::size_t i = 2; i < x.size(); ++i)
      LAMINA_CUDNN(api, AddTensor, session.handle(), one(dtype), x[i].get(), args.x[i].data, one(dtype), y.get(),
                   args.y.data);
    tail.forward(args);
  }

  void backward(const Args& args) const {
    tail.backward(args);
    for (const bool in_place : {false, true})  // a dx that aliases dy comes last
      for (std::size_t i = 0; i < dx.size(); ++i)
        if (wanted(args, i) && (!relu && same_place(args.dx[i], args.dy)) == in_place) write(args, i, in_place);
  }

 private:
  void write(const Args& args, std::size_t i, bool in_place) const {
    static const float float_two = 2;
    static const double double_two = 2;
    const void* const two = dtype == DType::f64 ? static_cast<const void*>(&double_two) : &float_two;
    if (!in_place)
      LAMINA_CUDNN(api, TransformTensor, session.handle(), one(dtype), (relu ? y : dy).get(), tail.dy(args),
                   beta(dtype, adds[i]), dx[i].get(), args.dx[i].data);
    else if (adds[i])
      LAMINA_CUDNN(api, ScaleTensor, session.handle(), dx[i].get(), args.dx[i].data, two);
  }
};

}  // namespace

Lowered lower(const Add&, const Spec& spec, const Choice& choice, Session& session) {
  const auto sum = std::make_shared<const Sum>(spec, session);
  Lowered unit = empty_unit(spec);
  for (std::size_t i = 0; i < spec.x.size(); ++i) {
    unit.y_may_alias_x[i] = i < 2 && same_pitch(spec, i);  // a third input is read after y was written
    unit.dx_is_dy[i] = !sum->relu;
    unit.dx_may_alias_dy[i] = !sum->relu && same_gradient_pitch(spec, i);
  }
  unit = with_steps(
      unit, spec, [sum](const Args& args) { sum->forward(args); }, [sum](const Args& args) { sum->backward(args); });
  sum->tail.require(unit);
  graph::offer_engines(unit, spec, Pass::forward, choice, session);
  return unit;
}

}  // namespace lamina::cudnn
