// Where everything of a plan lies.

#include "layout.h"

#include <algorithm>
#include <initializer_list>

namespace lamina::planner {
namespace {

constexpr std::size_t alignment = 256;

std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) & ~(alignment - 1); }

/// Blocks that are laid one behind the other in a room of their own.
class Row {
 public:
  explicit Row(Room room) : room_(room) {}
  Location take(std::size_t bytes) {
    if (bytes == 0) return {};
    const Location location{room_, bytes_};
    bytes_ += aligned(bytes);
    return location;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  Room room_;
  std::size_t bytes_ = 0;
};

/// Blocks with lives, packed into the arena once all are known.
class Arena {
 public:
  void take(std::size_t bytes, int first, int last, Location& location, std::size_t& total) {
    if (bytes == 0) return;
    blocks_.push_back({bytes, first, last});
    locations_.push_back(&location);
    total += bytes;
  }
  std::size_t place() {
    const Packing packing = pack(blocks_, alignment);
    for (std::size_t i = 0; i < blocks_.size(); ++i) *locations_[i] = {Room::arena, packing.offsets[i]};
    return packing.bytes;
  }
  /// For plans that pack nothing: every block lives for ever.
  void outlive(int steps) {
    for (Lifetime& block : blocks_) block.first = 0, block.last = steps;
  }

 private:
  std::vector<Lifetime> blocks_;
  std::vector<Location*> locations_;
};

void place_parameters(PlanLayout& layout, const std::vector<Node>& nodes, const Options& options) {
  Row parameters(Room::parameters), gradients(Room::parameter_gradients), state(Room::state);
  layout.parameter.resize(nodes.size());
  layout.parameter_gradient.resize(nodes.size());
  layout.state.resize(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const Shape& w : nodes[i].params) {
      const std::size_t bytes = static_cast<std::size_t>(w.count()) * size_of(options.dtype);
      layout.parameter[i].push_back(parameters.take(bytes));
      if (options.mode == Mode::training) layout.parameter_gradient[i].push_back(gradients.take(bytes));
    }
    for (const Shape& s : nodes[i].state)
      layout.state[i].push_back(
          state.take(static_cast<std::size_t>(s.count()) * size_of(state_dtype(nodes[i].op, options.dtype))));
  }
  layout.parameter_bytes = parameters.bytes();
  layout.memory.parameters = parameters.bytes() + gradients.bytes();
  layout.memory.state = state.bytes();
}

/// The blocks of values or gradients: one per root, for as long as any member of it lives.
void place_tensors(const std::vector<Accesses>& lives, const Places& places, const std::vector<std::size_t>& bytes,
                   Row& inputs, Arena& arena, std::vector<Location>& locations, std::size_t& total) {
  std::vector<int> first(lives.size(), forever), last(lives.size(), -1);
  for (std::size_t i = 0; i < lives.size(); ++i) {
    if (lives[i].writes.empty()) continue;
    const auto root = static_cast<std::size_t>(places.root[i]);
    first[root] = std::min(first[root], lives[i].first());
    last[root] = std::max(last[root], lives[i].last());
  }
  for (std::size_t i = 0; i < lives.size(); ++i) {
    if (last[i] == forever)
      locations[i] = inputs.take(bytes[i]);
    else if (last[i] >= 0)
      arena.take(bytes[i], first[i], last[i], locations[i], total);
  }
}

/// Moves each member from its root's place to its own.
void follow_roots(const Places& places, const std::vector<Accesses>& lives, std::size_t element_bytes,
                  std::vector<Location>& locations) {
  for (std::size_t i = 0; i < locations.size(); ++i) {
    if (lives[i].writes.empty()) continue;
    if (places.root[i] == static_cast<int>(i)) continue;
    const Location& root = locations[static_cast<std::size_t>(places.root[i])];
    locations[i] = {root.room, root.offset_bytes + static_cast<std::size_t>(places.offset[i]) * element_bytes};
  }
}

/// One block for each step of the plan at which the unit's kernels run.
void place_workspace(PlanLayout& layout, int i, Arena& arena) {
  const Units& units = layout.units;
  const Unit& unit = units.list[static_cast<std::size_t>(i)];
  Workspaces& at = layout.workspace[static_cast<std::size_t>(i)];
  const auto take = [&](std::initializer_list<Pass> passes, int when, Location& location) {
    std::size_t bytes = 0, unused = 0;
    for (const Lowered::Step& step : unit.lowered->steps)
      for (const Pass pass : passes)
        if (step.covers(pass)) bytes = std::max(bytes, step.kernel->workspace_bytes());
    arena.take(bytes, when, when, location, unused);
  };
  take({Pass::forward, Pass::prepare}, i, at.forward);
  if (unit.backward) take({Pass::backward_params, Pass::backward_data}, units.backward_step(i), at.backward);
  const auto& remade = layout.lives.remade[static_cast<std::size_t>(unit.y())].writes;
  if (!remade.empty()) take({Pass::recompute}, remade[0], at.recompute);
}

/// Where nothing that a call wrote may be written over: one block for all calls, for ever.
void place_kept_workspace(PlanLayout& layout, Arena& arena, Location& location) {
  std::size_t unused = 0;
  arena.take(layout.memory.workspace, 0, layout.units.steps(), location, unused);
}

void place_blocks_of_units(PlanLayout& layout, Arena& arena, Row& prepared, bool keep_values) {
  const Units& units = layout.units;
  MemoryReport& memory = layout.memory;
  for (int i = 0; i < static_cast<int>(units.list.size()); ++i) {
    const auto u = static_cast<std::size_t>(i);
    const Unit& unit = units.list[u];
    const Lowered& lowered = *unit.lowered;
    int last = unit.backward ? units.backward_step(i) : i;
    for (const int step : layout.lives.remade[static_cast<std::size_t>(unit.y())].writes) last = std::max(last, step);
    arena.take(lowered.saved_bytes, i, last, layout.saved[u], memory.saved);
    if (unit.backward)
      arena.take(lowered.backward_bytes, units.backward_step(i), units.backward_step(i), layout.scratch[u],
                 memory.scratch);
    layout.prepared[u] = prepared.take(lowered.prepared_bytes);
    for (const Lowered::Step& step : lowered.steps)
      memory.workspace = std::max(memory.workspace, step.kernel->workspace_bytes());
    if (!keep_values) place_workspace(layout, i, arena);
    if (unit.choice.measure || !lowered.workspace_exact) memory.workspace_exact = false;
  }
}

}  // namespace

PlanLayout make_layout(const Graph& graph, Backend& backend, const Options& options) {
  const auto& nodes = graph.nodes();
  PlanLayout layout;
  layout.units = make_units(graph, backend, options);
  layout.lives = make_lifetimes(layout.units, nodes, options);
  layout.aliases = make_aliases(layout.units, layout.lives, nodes, options);
  place_parameters(layout, nodes, options);

  std::vector<std::size_t> bytes;
  for (const Node& node : nodes) bytes.push_back(static_cast<std::size_t>(node.shape.count()) * size_of(options.dtype));
  for (auto* locations : {&layout.value, &layout.gradient, &layout.remade}) locations->resize(nodes.size());
  for (auto* locations : {&layout.saved, &layout.scratch, &layout.prepared})
    locations->resize(layout.units.list.size());
  layout.workspace.resize(layout.units.list.size());

  Arena arena;
  Row inputs(Room::inputs), prepared(Room::prepared);
  MemoryReport& memory = layout.memory;
  place_tensors(layout.lives.value, layout.aliases.value, bytes, inputs, arena, layout.value, memory.values);
  place_tensors(layout.lives.gradient, layout.aliases.gradient, bytes, inputs, arena, layout.gradient,
                memory.gradients);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (layout.lives.dropped(static_cast<int>(i)))
      arena.take(bytes[i], layout.lives.remade[i].first(), layout.lives.remade[i].last(), layout.remade[i],
                 memory.values);
  place_blocks_of_units(layout, arena, prepared, options.keep_values);
  Location kept_workspace;
  if (options.keep_values) {
    place_kept_workspace(layout, arena, kept_workspace);
    arena.outlive(layout.units.steps());
  }
  memory.arena = arena.place();
  if (options.keep_values)
    layout.workspace.assign(layout.units.list.size(), {kept_workspace, kept_workspace, kept_workspace});
  memory.inputs = inputs.bytes();
  memory.prepared = prepared.bytes();
  follow_roots(layout.aliases.value, layout.lives.value, size_of(options.dtype), layout.value);
  follow_roots(layout.aliases.gradient, layout.lives.gradient, size_of(options.dtype), layout.gradient);
  return layout;
}

}  // namespace lamina::planner

namespace lamina {

MemoryReport predict_memory(const Graph& graph, Backend& backend, const Options& options) {
  return planner::make_layout(graph, backend, options).memory;
}

}  // namespace lamina
