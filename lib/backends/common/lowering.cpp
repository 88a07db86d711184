// The flags of a unit, and picking an algorithm for a pass, as a Choice demands.

#include "lowering.h"

#include <cmath>
#include <sstream>
#include <variant>

#include "lamina/error.h"
#include "lib/core/text/enumerators.h"
#include "lib/core/units/spec_passes.h"

namespace lamina {
namespace {

/// Why an alternative is not acceptable, or empty.
std::string refusal(const Alternative& alternative, const Lowered::Step& step, const Choice& choice) {
  std::ostringstream text;
  if (alternative.max_error > choice.max_error) {
    text << alternative.algorithm << " guarantees ";
    if (alternative.max_error == no_bound)
      text << "no bound on its error";
    else
      text << "a relative error of " << alternative.max_error << ", not " << choice.max_error;
  } else if (choice.deterministic && !step.deterministic) {
    text << alternative.algorithm << " may give other bits on another run";
  } else if (step.kernel->workspace_bytes() > choice.workspace_limit) {
    text << alternative.algorithm << " needs " << step.kernel->workspace_bytes() << " bytes of workspace, the limit is "
         << choice.workspace_limit;
  }
  return text.str();
}

/// Why the alternative is taken, where there are several; `refused` has what the limits say of those before it.
std::string reason_of(const Alternative& taken, bool named, const std::vector<Alternative>& all,
                      const std::string& refused) {
  if (named) return "named";
  if (all.size() == 1) return {};
  if (!refused.empty()) return "rule: the first within the limits; " + refused;
  if (!taken.reason.empty()) return "rule: " + taken.reason;
  std::string others;
  for (const Alternative& other : all)
    if (&other != &taken) others += (others.empty() ? "" : ", ") + other.algorithm;
  return "rule: before " + others;
}

}  // namespace

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
  for (std::vector<bool>* flags :
       {&unit.backward_reads_x, &unit.y_may_alias_x, &unit.dx_is_dy, &unit.dx_may_alias_dy, &unit.recompute_reads_x})
    flags->assign(spec.x.size(), false);
  return unit;
}

bool same_pitch(const Spec& spec, std::size_t i) { return spec.x[i].pitch == spec.y.pitch; }
bool same_gradient_pitch(const Spec& spec, std::size_t i) { return spec.x[i].gradient_pitch == spec.y.gradient_pitch; }

void allow_in_place(Lowered& unit, const Spec& spec, std::size_t i) {
  unit.y_may_alias_x[i] = same_pitch(spec, i);
  unit.dx_may_alias_dy[i] = same_gradient_pitch(spec, i);
  unit.recompute_reads_x[i] = true;
}

Lowered in_place_unit(const Spec& spec) {
  Lowered unit = empty_unit(spec);
  allow_in_place(unit, spec, 0);
  unit.backward_reads_y = true;
  return unit;
}

Lowered product_unit(const Spec& spec) {
  Lowered unit = empty_unit(spec);
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    if (spec.x[i].shape == spec.y.shape) allow_in_place(unit, spec, i);
    unit.recompute_reads_x[i] = true;
    unit.backward_reads_x[i] = spec.mode == Mode::training && spec.wants_dx[1 - i];
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
  const auto* const lstm = std::get_if<Lstm>(&op);
  switch (pass) {
    case Pass::forward: return true;
    case Pass::backward_params: return !parameter_names(op).empty();
    case Pass::backward_data:  // ids have no gradient
      return !std::holds_alternative<Embedding>(op) && (lstm == nullptr || lstm->vocabulary == 0);
    case Pass::recompute:
      return !std::holds_alternative<Concat>(op) && !std::holds_alternative<Slice>(op) && !is_loss(op) &&
             lstm == nullptr;
    case Pass::prepare: return false;
  }
  return false;
}

bool reads_two_values(const Node& node) { return node.inputs.size() == 2 && node.inputs[0] != node.inputs[1]; }

void check_workspace(const std::string& unit, const Choice& choice, const Lowered::Step& step) {
  if (step.kernel->workspace_bytes() > choice.workspace_limit)
    throw Unsupported(unit + ", " + std::string(to_string(step.passes.front())) + ": " + step.algorithm + " needs " +
                      std::to_string(step.kernel->workspace_bytes()) + " bytes of workspace, the limit is " +
                      std::to_string(choice.workspace_limit));
}

void check_direct(const std::string& backend, const Spec& spec, const Choice& choice, const Lowered& lowered) {
  for (const std::string& name : choice.algorithm)
    if (!name.empty() && name != "direct")
      throw UsageError(backend + ": no algorithm '" + name + "' for " + std::string(op_name(spec.op)) +
                       "; there is: direct");
  for (const Lowered::Step& step : lowered.steps) check_workspace(backend + ": " + to_string(spec.op), choice, step);
}

bool adds_dx(const Spec& spec, std::size_t i) { return i < spec.adds_dx.size() && spec.adds_dx[i]; }
bool wanted(const Args& args, std::size_t i) { return i < args.dx.size() && args.dx[i]; }
bool same_place(const Tensor& a, const Tensor& b) { return a.data == b.data && a.pitch == b.pitch; }
bool ends_in_relu(const Spec& spec) { return !spec.tail.empty() && std::holds_alternative<Relu>(spec.tail.back()); }

Lowered::Step pick(const std::string& unit, Pass pass, const Choice& choice,
                   const std::vector<Alternative>& alternatives) {
  const std::string& named = choice.algorithm[static_cast<std::size_t>(pass)];
  std::string known, reasons;
  for (const Alternative& alternative : alternatives) {
    known += (known.empty() ? "" : ", ") + alternative.algorithm;
    if (!named.empty() && alternative.algorithm != named) continue;
    Lowered::Step step = alternative.lower();
    step.max_error = alternative.max_error;
    const std::string reason = refusal(alternative, step, choice);
    if (reason.empty()) {
      step.reason = reason_of(alternative, !named.empty(), alternatives, reasons);
      return step;
    }
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  const std::string where = unit + ", " + std::string(to_string(pass)) + ": ";
  if (reasons.empty()) throw UsageError(where + "unknown algorithm '" + named + "'; there are " + known);
  throw Unsupported(where + reasons);
}

Lowered assemble(const Spec& spec, const std::function<Lowered::Step(Pass)>& lower_pass) {
  Lowered lowered = empty_unit(spec);
  const bool training = spec.mode == Mode::training;
  for (const Pass pass : {Pass::forward, Pass::backward_params, Pass::backward_data})
    if (wants(spec, pass)) lowered.steps.push_back(lower_pass(pass));
  lowered.backward_reads_x[0] = training;
  lowered.backward_reads_y = training && ends_in_relu(spec);
  return lowered;
}

double unit_roundoff(DType dtype) {
  const int significant_bits = dtype == DType::f64 ? 53 : dtype == DType::f16 ? 11 : dtype == DType::bf16 ? 8 : 24;
  return std::ldexp(1.0, -significant_bits);
}

}  // namespace lamina
