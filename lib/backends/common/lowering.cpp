// Flags and checks of units, for every backend.

#include "lowering.h"

#include <cmath>

#include "lib/core/text/enumerators.h"
#include "lib/core/units/binary.h"
#include "lib/core/units/op_reads.h"
#include "lib/core/units/spec_passes.h"
#include "lib/core/units/unit_memory.h"

namespace lamina {
void check_enumerators(const Spec& spec, const Choice& choice) {
  const auto check = [](const TensorSpec& tensor, const char* of) {
    check_enumerator(tensor.dtype, DType::u64, std::string("Spec: dtype of ") + of);
    check_enumerator(tensor.layout, Layout::nhwc, std::string("Spec: layout of ") + of);
  };
  for (const TensorSpec& x : spec.x) check(x, "x");
  for (const TensorSpec& w : spec.w) check(w, "w");
  for (const TensorSpec& state : spec.state) check(state, "state");
  check(spec.y, "y");
  check_enumerator(spec.mode, Mode::training, "Spec::mode");
  check_enumerator(choice.math, Math::tf32, "Choice::math");
}

Lowered empty_unit(const Spec& spec) {
  Lowered unit;
  for (std::vector<bool>* flags : {&unit.backward_reads_x, &unit.y_may_alias_x, &unit.dx_is_dy, &unit.dx_may_alias_dy})
    flags->assign(spec.x.size(), false);
  return unit;
}

void allow_in_place(Lowered& unit, const Spec& spec, std::size_t i) {
  unit.y_may_alias_x[i] = same_pitch(spec, i);
  unit.dx_may_alias_dy[i] = same_gradient_pitch(spec, i);
}

Lowered in_place_unit(const Spec& spec) {
  Lowered unit = empty_unit(spec);
  allow_in_place(unit, spec, 0);
  unit.backward_reads_y = true;
  return unit;
}

Lowered pointwise_unit(const Spec& spec) {
  Lowered unit = in_place_unit(spec);
  unit.backward_reads_y = op_reads(spec.op, Pass::backward_data).y;
  unit.backward_reads_x[0] = !unit.backward_reads_y;
  return unit;
}

Lowered binary_unit(const Spec& spec) {
  using F = BinaryFunction;
  const F function = std::get<Binary>(spec.op).function;
  Lowered unit = empty_unit(spec);
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const bool fills = spec.x[i].shape == spec.y.shape;
    if (fills) allow_in_place(unit, spec, i);
    unit.dx_is_dy[i] = fills && (function == F::add || (function == F::subtract && i == 0));
    for (const int of : {0, 1})
      if (spec.mode == Mode::training && spec.wants_dx[static_cast<std::size_t>(of)] &&
          gradient_reads(function, of, static_cast<int>(i)))
        unit.backward_reads_x[i] = true;
  }
  return unit;
}

Lowered reorder_unit(const Spec& spec, const std::vector<CopyAxis>& axes) {
  Lowered unit = empty_unit(spec);
  if (axes.size() == 1) {
    allow_in_place(unit, spec, 0);
    unit.dx_is_dy[0] = true;
  }
  return unit;
}

NormTail norm_tail(const Spec& spec) {
  NormTail tail;
  for (const Op& op : spec.tail) {
    tail.add |= std::holds_alternative<Add>(op);
    tail.relu |= std::holds_alternative<Relu>(op);
  }
  return tail;
}

Lowered norm_unit(const Spec& spec, NormTail tail) {
  Lowered unit = empty_unit(spec);
  for (std::size_t i = 0; i < spec.x.size(); ++i) allow_in_place(unit, spec, i);
  unit.backward_reads_x[0] = true;
  unit.backward_reads_y = tail.add && tail.relu;
  if (tail.add) unit.dx_is_dy[1] = !tail.relu;
  return unit;
}

bool has_pass(const Op& op, Pass pass) {
  const auto* const recurrent = std::get_if<Recurrent>(&op);
  switch (pass) {
    case Pass::forward: return true;
    case Pass::backward_params: return !parameter_names(op).empty();
    case Pass::backward_data:  // ids have no gradient
      return !std::holds_alternative<Embedding>(op) && (recurrent == nullptr || recurrent->vocabulary == 0);
    case Pass::recompute: return !may_be_view(op) && !is_loss(op) && recurrent == nullptr;
    case Pass::prepare: return false;
  }
  return false;
}

void check_workspace(const std::string& unit, const Choice& choice, const Lowered::Step& step) {
  if (step.kernel->workspace_bytes() > choice.workspace_limit)
    throw Unsupported(unit + ", " + std::string(to_string(step.passes.front())) + ": " + step.algorithm + " needs " +
                      std::to_string(step.kernel->workspace_bytes()) + " bytes of workspace, the limit is " +
                      std::to_string(choice.workspace_limit));
}

void check_direct(const std::string& backend, const Spec& spec, const Choice& choice, const Lowered& lowered) {
  for (std::size_t pass = 0; pass < choice.algorithm.size(); ++pass) {
    const std::string& name = choice.algorithm[pass];
    const Lowered::Step* const step = find_step(lowered, static_cast<Pass>(pass));
    if (!name.empty() && name != "direct" && (step == nullptr || step->algorithm != name))
      throw UsageError(backend + ": no algorithm '" + name + "' for " + std::string(op_name(spec.op)) +
                       "; there is: direct");
  }
  for (const Lowered::Step& step : lowered.steps) check_workspace(backend + ": " + to_string(spec.op), choice, step);
}

Lowered product_flags(const Spec& spec) {
  Lowered unit = empty_unit(spec);
  unit.backward_reads_x[0] = spec.mode == Mode::training;
  unit.backward_reads_y = spec.mode == Mode::training && ends_in_relu(spec) && !spec.dy_is_masked;
  return unit;
}

std::vector<Pass> gradient_passes(const Spec& spec) {
  std::vector<Pass> passes = {Pass::backward_params, Pass::backward_data};
  std::erase_if(passes, [&](Pass pass) { return !has_pass(spec.op, pass); });
  return passes;
}

std::vector<Pass> product_passes(const Spec& spec) {
  std::vector<Pass> passes;
  for (const Pass pass : algorithm_passes)
    if (wants(spec, pass)) passes.push_back(pass);
  return passes;
}

double unit_roundoff(DType dtype) {
  const int significant_bits = dtype == DType::f64 ? 53 : dtype == DType::f16 ? 11 : dtype == DType::bf16 ? 8 : 24;
  return std::ldexp(1.0, -significant_bits);
}

}  // namespace lamina
