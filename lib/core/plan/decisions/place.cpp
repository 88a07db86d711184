// The offset of every tensor and block in one of the plan's buffers, and the sizes of the buffers.

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "decisions.h"
#include "lib/core/numbers/rounding.h"
#include "lib/core/units/unit_memory.h"

namespace lamina::planner {
namespace {

/// Consecutive blocks, for as long as the plan lives.
class Row {
 public:
  explicit Row(BufferKind buffer) : buffer_(buffer) {}
  Location take(std::size_t bytes) {
    if (bytes == 0) return {};
    const Location location{buffer_, bytes_};
    bytes_ += aligned(bytes);
    return location;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  BufferKind buffer_;
  std::size_t bytes_ = 0;
};

/// Blocks with lifetimes, packed into the arena when all are known.
class Arena {
 public:
  /// `location` is set by place().
  void take(std::size_t bytes, Step first, Step last, Location& location, std::size_t LiveMemory::*kind) {
    if (bytes == 0) return;
    blocks_.push_back({{bytes, static_cast<int>(first), static_cast<int>(last)}, kind});
    locations_.push_back(&location);
  }
  std::size_t place() {
    std::vector<Lifetime> lives;
    for (const ArenaBlock& block : blocks_) lives.push_back(block.life);
    const Packing packing = pack(lives, block_alignment);
    for (std::size_t i = 0; i < blocks_.size(); ++i) *locations_[i] = {BufferKind::arena, packing.offsets[i]};
    return packing.bytes;
  }
  /// Lets every block live as long as the plan, for plans that pack nothing.
  void outlive(Step end) {
    for (ArenaBlock& block : blocks_) block.life.first = 0, block.life.last = static_cast<int>(end);
  }
  /// The bytes of all blocks of a kind, each once.
  std::size_t bytes_of(std::size_t LiveMemory::*kind) const {
    std::size_t bytes = 0;
    for (const ArenaBlock& block : blocks_) bytes += block.kind == kind ? block.life.bytes : 0;
    return bytes;
  }
  std::vector<ArenaBlock> blocks() && { return std::move(blocks_); }

 private:
  std::vector<ArenaBlock> blocks_;
  std::vector<Location*> locations_;
};

void place_parameters(PlanLayout& layout, const Nodes& nodes, const Options& options) {
  Row parameters(BufferKind::parameters), gradients(BufferKind::parameter_gradients), state(BufferKind::state);
  layout.parameter = layout.parameter_gradient = layout.state = EachNode<std::vector<Location>>(nodes.size());
  const DType dtype = parameter_dtype(options.dtype);
  for (const NodeId node : nodes.ids()) {
    if (options.share != nullptr) continue;
    const auto add = [&](EachNode<std::vector<Location>>& places, const Slot& of, Row& row, const Shape& shape,
                         DType its) {
      places[node].push_back(of.node < 0 ? row.take(dense_bytes(shape, its)) : places[NodeId{of.node}][of.index]);
    };
    const Node& n = nodes[node];
    for (std::size_t k = 0; k < n.params.size(); ++k) {
      add(layout.parameter, n.params_of[k], n.fixed[k] ? state : parameters, n.params[k], dtype);
      if (options.mode != Mode::training) continue;
      if (n.fixed[k])
        layout.parameter_gradient[node].emplace_back();
      else
        add(layout.parameter_gradient, n.params_of[k], gradients, n.params[k], dtype);
    }
    for (std::size_t k = 0; k < n.state.size(); ++k)
      add(layout.state, n.state_of[k], state, n.state[k], state_dtype(n.op, options.dtype));
  }
  // Kernels also compute some gradients of fixed parameters. These gradients follow the row of an update.
  for (const NodeId node : nodes.ids())
    for (std::size_t k = 0; k < layout.parameter_gradient[node].size(); ++k)
      if (nodes[node].fixed[k] && computes_gradients(nodes[node]))
        layout.parameter_gradient[node][k] = gradients.take(dense_bytes(nodes[node].params[k], dtype));
  layout.parameter_bytes = parameters.bytes();
  layout.memory.parameters = parameters.bytes() + gradients.bytes();
  layout.memory.state = state.bytes();
  if (options.optimiser) {
    layout.norm_offset = state_names(*options.optimiser).size() * layout.parameter_bytes;
    const std::size_t sums = options.clip_norm > 0 ? aligned(Update::norm_sums * sizeof(double)) : 0;
    layout.loss_scale_offset = layout.norm_offset + sums;
    layout.memory.optimiser = layout.loss_scale_offset + (options.loss_scale > 0 ? aligned(sizeof(LossScale)) : 0);
  }
}

/// Values or gradients: one block per root, which lives as long as any of its members.
struct Tensors {
  const EachNode<Accesses>& lives;
  const Places& places;
  const EachNode<DType>& dtype;
  EachNode<Location>& locations;

  void take(const Nodes& nodes, Row& inputs, Arena& arena, std::size_t LiveMemory::*kind) {
    EachNode<Step> first(lives.size(), forever), last(lives.size(), none<Step>);
    for (const NodeId i : lives.ids()) {
      if (lives[i].writes.empty()) continue;
      const NodeId root = places.root[i];
      first[root] = std::min(first[root], lives[i].first());
      last[root] = std::max(last[root], lives[i].last());
    }
    for (const NodeId i : lives.ids()) {
      const std::size_t bytes = dense_bytes(nodes[i].shape, dtype[i]);
      if (last[i] == forever)
        locations[i] = inputs.take(bytes);
      else if (last[i] != none<Step>)
        arena.take(bytes, first[i], last[i], locations[i], kind);
    }
  }

  /// Sets each member's location, once the location of its root is known.
  void follow_roots() {
    for (const NodeId i : lives.ids()) {
      if (lives[i].writes.empty() || places.root[i] == i) continue;
      const Location& root = locations[places.root[i]];
      const std::size_t offset_bytes = static_cast<std::size_t>(places.offset[i]) * size_of(dtype[i]);
      locations[i] = {root.buffer, root.offset_bytes + offset_bytes};
    }
  }
};

/// One block for each step of the plan at which the unit's kernels run.
void take_workspace(PlanLayout& layout, UnitId id, Arena& arena) {
  const Units& units = layout.units;
  const Unit& unit = units.list[id];
  Workspaces& at = layout.workspace[id];
  const auto take = [&](std::initializer_list<Pass> passes, Step when, Location& location) {
    std::size_t bytes = 0;
    for (const Pass pass : passes) bytes = std::max(bytes, workspace_bytes(*unit.lowered, pass));
    arena.take(bytes, when, when, location, &LiveMemory::workspace);
  };
  take({Pass::forward, Pass::prepare}, units.forward_step(id), at.forward);
  if (unit.backward) take({Pass::backward_params, Pass::backward_data}, units.backward_step(id), at.backward);
  const auto& recomputed = layout.lives.recomputed[unit.y()].writes;
  if (!recomputed.empty()) take({Pass::recompute}, recomputed[0], at.recompute);
}

void take_blocks(PlanLayout& layout, UnitId id, Arena& arena, Row& prepared) {
  const Units& units = layout.units;
  const Unit& unit = units.list[id];
  const Lowered& lowered = *unit.lowered;
  MemoryReport& memory = layout.memory;
  const Step forward = units.forward_step(id), backward = units.backward_step(id);
  Step last = unit.backward ? backward : forward;
  for (const Step step : layout.lives.recomputed[unit.y()].writes) last = std::max(last, step);
  arena.take(lowered.saved_bytes, forward, last, layout.saved[id], &LiveMemory::saved);
  if (unit.backward) arena.take(lowered.scratch_bytes, backward, backward, layout.scratch[id], &LiveMemory::scratch);
  layout.prepared[id] = prepared.take(lowered.prepared_bytes);
  memory.workspace = std::max(memory.workspace, workspace_bytes(lowered));
  if (unit.choice.measure || !lowered.workspace_exact) memory.workspace_exact = false;
}

}  // namespace

void place(PlanLayout& layout, const Nodes& nodes, const Options& options) {
  const Units& units = layout.units;
  MemoryReport& memory = layout.memory;
  layout.value = layout.gradient = layout.recomputed = EachNode<Location>(nodes.size());
  layout.saved = layout.scratch = layout.prepared = EachUnit<Location>(units.list.size());
  layout.workspace = EachUnit<Workspaces>(units.list.size());
  place_parameters(layout, nodes, options);

  Arena arena;
  Row inputs(BufferKind::inputs), prepared(BufferKind::prepared);
  Tensors values{layout.lives.value, layout.aliases.value, units.dtype, layout.value};
  Tensors gradients{layout.lives.gradient, layout.aliases.gradient, units.dtype, layout.gradient};
  values.take(nodes, inputs, arena, &LiveMemory::values);
  gradients.take(nodes, inputs, arena, &LiveMemory::gradients);
  for (const NodeId node : nodes.ids())
    if (const Accesses& again = layout.lives.recomputed[node]; layout.lives.dropped(node))
      arena.take(dense_bytes(nodes[node].shape, units.dtype[node]), again.first(), again.last(),
                 layout.recomputed[node], &LiveMemory::values);
  for (const UnitId unit : units.list.ids()) {
    take_blocks(layout, unit, arena, prepared);
    if (!options.keep_values) take_workspace(layout, unit, arena);
  }
  Location kept_workspace;  // block for all calls, if the plan keeps every value
  if (options.keep_values) {
    arena.take(memory.workspace, Step{0}, units.end(), kept_workspace, &LiveMemory::workspace);
    arena.outlive(units.end());
  }
  memory.arena = arena.place();
  memory.values = arena.bytes_of(&LiveMemory::values);
  memory.gradients = arena.bytes_of(&LiveMemory::gradients);
  memory.saved = arena.bytes_of(&LiveMemory::saved);
  memory.scratch = arena.bytes_of(&LiveMemory::scratch);
  memory.inputs = inputs.bytes();
  memory.prepared = prepared.bytes();
  if (options.keep_values)
    for (Workspaces& workspace : layout.workspace) workspace = {kept_workspace, kept_workspace, kept_workspace};
  values.follow_roots();
  gradients.follow_roots();
  layout.blocks = std::move(arena).blocks();
}

}  // namespace lamina::planner
