// Winograd's transforms read and write bf16 themselves: on a whole batch, without copies in f32. So where
// lower_halves() took such an algorithm, its kernel for chunks of copies is replaced by the one of f32 itself.

#include "bf16_winograd.h"

#include <limits>
#include <memory>
#include <variant>
#include <vector>

#include "lib/backends/common/lowering.h"
#include "lib/core/units/unit_memory.h"

namespace lamina::eigen {

bool is_of_bf16(const Spec& spec) { return spec.y.dtype == DType::bf16 && has_one_type(spec); }

Lowered lower_with_bf16_winograd(const Spec& spec, const Choice& choice, HalfUnits& halves, const Context& context) {
  Lowered lowered = lower_halves(spec, choice, halves);
  if (!std::holds_alternative<Conv>(spec.op) || !is_of_bf16(spec)) return lowered;
  const auto is_winograd = [](const Lowered::Step& step) { return step.algorithm.starts_with("winograd"); };
  if (std::none_of(lowered.steps.begin(), lowered.steps.end(), is_winograd)) return lowered;
  Choice same;
  for (const Lowered::Step& step : lowered.steps)
    if (const auto pass = static_cast<std::size_t>(step.passes.front()); pass < same.algorithm.size())
      same.algorithm[pass] = step.algorithm;
  same.workspace_limit = std::numeric_limits<std::size_t>::max();
  const Lowered at_once = context.set.lower(in_f32(spec), same, context);
  bool forward_at_once = false;
  for (Lowered::Step& step : lowered.steps) {
    if (!is_winograd(step) || step.covers(Pass::prepare)) continue;
    const std::shared_ptr<Kernel>& kernel = find_step(at_once, step.passes.front())->kernel;
    if (kernel->workspace_bytes() > choice.workspace_limit) continue;
    step.kernel = kernel;
    forward_at_once |= step.covers(Pass::forward);
  }
  if (!forward_at_once) return lowered;
  std::erase_if(lowered.steps, [](const Lowered::Step& step) { return step.covers(Pass::prepare); });
  if (const Lowered::Step* const prepare = find_step(at_once, Pass::prepare)) lowered.steps.push_back(*prepare);
  lowered.prepared_bytes = at_once.prepared_bytes;
  return lowered;
}

}  // namespace lamina::eigen
