#pragma once
// The tensors and blocks of one unit, bound: which exist, which gradients are null, and where each is in a buffer.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "lamina/backend.h"

namespace lamina {

/// The role of a tensor in a unit.
enum class Operand : std::uint8_t { x, dx, w, dw, state, y, dy };

/// A unit's own block of bytes.
enum class Block : std::uint8_t { saved, scratch, prepared, workspace };

/// The first step that covers a pass, or null. The step belongs to the unit, so the unit must not be a temporary.
inline const Lowered::Step* find_step(const Lowered& lowered, Pass pass) {
  const auto found = std::find_if(lowered.steps.begin(), lowered.steps.end(),
                                  [pass](const Lowered::Step& step) { return step.covers(pass); });
  return found == lowered.steps.end() ? nullptr : &*found;
}
const Lowered::Step* find_step(const Lowered&&, Pass) = delete;

/// The largest workspace of the unit's steps, or of the steps that cover a pass.
inline std::size_t workspace_bytes(const Lowered& lowered, std::optional<Pass> pass = {}) {
  std::size_t most = 0;
  for (const Lowered::Step& step : lowered.steps)
    if (!pass || step.covers(*pass)) most = std::max(most, step.kernel->workspace_bytes());
  return most;
}

/// Requests from `memory` every tensor and then every block of the unit, each once, in a fixed order. `memory` has
///   Tensor tensor(Operand, std::size_t i, const TensorSpec&, std::int64_t pitch)
///   void* block(Block, std::size_t bytes)
/// Gradients that the unit does not want are null, and not requested.
template <class Memory>
Args bind_unit(const Spec& spec, const Lowered& lowered, Memory&& memory) {
  const bool training = spec.mode == Mode::training;
  Args args;
  for (std::size_t i = 0; i < spec.x.size(); ++i) {
    const bool wants_dx = training && i < spec.wants_dx.size() && spec.wants_dx[i];
    args.x.push_back(memory.tensor(Operand::x, i, spec.x[i], spec.x[i].pitch));
    args.dx.push_back(wants_dx ? memory.tensor(Operand::dx, i, spec.x[i], spec.x[i].gradient_pitch) : Tensor{});
  }
  for (std::size_t i = 0; i < spec.w.size(); ++i) {
    args.w.push_back(memory.tensor(Operand::w, i, spec.w[i], spec.w[i].pitch));
    args.dw.push_back(training ? memory.tensor(Operand::dw, i, spec.w[i], spec.w[i].pitch) : Tensor{});
  }
  for (std::size_t i = 0; i < spec.state.size(); ++i)
    args.state.push_back(memory.tensor(Operand::state, i, spec.state[i], spec.state[i].pitch));
  args.y = memory.tensor(Operand::y, 0, spec.y, spec.y.pitch);
  if (training) args.dy = memory.tensor(Operand::dy, 0, spec.y, spec.y.gradient_pitch);
  args.saved = memory.block(Block::saved, lowered.saved_bytes);
  args.scratch = memory.block(Block::scratch, lowered.scratch_bytes);
  args.prepared = memory.block(Block::prepared, lowered.prepared_bytes);
  args.workspace = memory.block(Block::workspace, workspace_bytes(lowered));
  return args;
}

/// A single unit in one buffer: every tensor and block is aligned to 256 bytes.
struct UnitInBuffer {
  Args args;
  std::size_t bytes = 0;  ///< bytes of everything; the workspace is last
};

/// Binds from `buffer` on. With a null buffer it only counts bytes.
UnitInBuffer bind_in_buffer(const Spec&, const Lowered&, void* buffer);

}  // namespace lamina
