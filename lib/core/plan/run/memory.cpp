// The buffers of a plan, and the tensors in them.

#include "memory.h"

#include <cstddef>
#include <map>
#include <string>

#include "lib/core/numbers/rounding.h"

namespace lamina::planner {

Memory::Memory(Device& device, const PlanLayout& layout, const Nodes& nodes, const Options& options,
               const Memory* share)
    : layout_(&layout),
      nodes_(nodes),
      parameter_dtype_(parameter_dtype(options.dtype)),
      order_(options.layout),
      lasting_(share != nullptr ? share->lasting_
                                : std::make_shared<const Lasting>(
                                      Lasting{{device, layout.parameter_bytes}, {device, layout.memory.state}})),
      parameter_gradients_(device, options.share != nullptr ? 0 : layout.memory.parameters - layout.parameter_bytes),
      optimiser_(device, layout.memory.optimiser),
      inputs_(device, layout.memory.inputs),
      arena_(device, layout.memory.arena),
      prepared_(device, layout.memory.prepared) {
  constexpr unsigned char nan = 0xff;
  device.fill(parameter_gradients_.data(), 0, parameter_gradients_.size_bytes());
  device.fill(inputs_.data(), nan, inputs_.size_bytes());
  device.fill(arena_.data(), nan, arena_.size_bytes());
  if (options.optimiser) {  // an update also covers the gaps between parameters
    device.fill(lasting_->parameters.data(), 0, lasting_->parameters.size_bytes());
    device.fill(optimiser_.data(), 0, optimiser_.size_bytes());
    const LossScale start{.scale = static_cast<float>(options.loss_scale)};
    if (LossScale* const scale = all_parameters().loss_scale) device.upload(scale, &start, sizeof start);
  }
  if (share == nullptr) return;
  shared_parameter_ = shared_state_ = EachNode<std::vector<Tensor>>(nodes.size());
  for (const NodeId id : nodes.ids()) {
    const Node& node = nodes[id];
    const auto parts = parameter_names(node.op), states = state_names(node.op);
    for (std::size_t k = 0; k < node.params.size(); ++k)
      shared_parameter_[id].push_back(node.fixed[k]
                                          ? options.share->state(node.name + "." + std::string(parts[k]))
                                          : options.share->parameter(node.name + "." + std::string(parts[k])));
    for (std::size_t k = 0; k < node.state.size(); ++k)
      shared_state_[id].push_back(options.share->state(node.name + "." + std::string(states[k])));
  }
}

void* Memory::address(const Location& location) const {
  const auto in = [&](const Buffer& buffer) -> void* {
    return static_cast<std::byte*>(buffer.data()) + location.offset_bytes;
  };
  switch (location.buffer) {
    case BufferKind::none: return nullptr;
    case BufferKind::parameters: return in(lasting_->parameters);
    case BufferKind::parameter_gradients: return in(parameter_gradients_);
    case BufferKind::state: return in(lasting_->state);
    case BufferKind::optimiser: return in(optimiser_);
    case BufferKind::inputs: return in(inputs_);
    case BufferKind::arena: return in(arena_);
    case BufferKind::prepared: return in(prepared_);
  }
  return nullptr;
}

Tensor Memory::dense(const Location& location, const Shape& shape, DType type) const {
  return {address(location), shape, type, order_, dense_pitch(shape, order_)};
}

Tensor Memory::placed(const EachNode<Location>& locations, const Places& places, NodeId i) const {
  const Shape& root = nodes_[places.root[i]].shape;
  return {address(locations[i]), nodes_[i].shape, layout_->units.dtype[i], order_, dense_pitch(root, order_)};
}

Tensor Memory::value(NodeId i) const { return placed(layout_->value, layout_->aliases.value, i); }

Tensor Memory::kept_value(NodeId i) const {
  return layout_->lives.dropped(i) ? dense(layout_->recomputed[i], nodes_[i].shape, layout_->units.dtype[i]) : value(i);
}

Tensor Memory::gradient(NodeId i) const { return placed(layout_->gradient, layout_->aliases.gradient, i); }

Tensor Memory::parameter(NodeId i, std::size_t k) const {
  if (!shared_parameter_.empty()) return shared_parameter_[i][k];
  return dense(layout_->parameter[i][k], nodes_[i].params[k], parameter_dtype_);
}

Tensor Memory::parameter_gradient(NodeId i, std::size_t k) const {
  const auto& locations = layout_->parameter_gradient[i];
  return locations.empty() ? Tensor{} : dense(locations[k], nodes_[i].params[k], parameter_dtype_);
}

Tensor Memory::state(NodeId i, std::size_t k) const {
  if (k >= nodes_[i].state.size()) return parameter(i, k - nodes_[i].state.size());
  if (!shared_state_.empty()) return shared_state_[i][k];
  return dense(layout_->state[i][k], nodes_[i].state[k], state_dtype(nodes_[i].op, parameter_dtype_));
}

Tensor Memory::optimiser_state(NodeId i, std::size_t k, std::size_t which) const {
  const std::size_t offset = which * layout_->parameter_bytes + layout_->parameter[i][k].offset_bytes;
  return dense({BufferKind::optimiser, offset}, nodes_[i].params[k], parameter_dtype_);
}

UpdateTensors Memory::all_parameters() const {
  UpdateTensors all;
  all.dtype = parameter_dtype_;
  all.count = static_cast<std::int64_t>(layout_->parameter_bytes / size_of(parameter_dtype_));
  all.p = address({BufferKind::parameters, 0});
  all.g = address({BufferKind::parameter_gradients, 0});
  if (layout_->norm_offset > 0) all.first = address({BufferKind::optimiser, 0});
  if (layout_->norm_offset > layout_->parameter_bytes)
    all.second = address({BufferKind::optimiser, layout_->parameter_bytes});
  if (layout_->loss_scale_offset > layout_->norm_offset)
    all.sums = static_cast<double*>(address({BufferKind::optimiser, layout_->norm_offset}));
  if (layout_->memory.optimiser > layout_->loss_scale_offset)
    all.loss_scale = static_cast<LossScale*>(address({BufferKind::optimiser, layout_->loss_scale_offset}));
  return all;
}

std::vector<UpdateTensors> Memory::update_rows(TableUpdates tables) const {
  const UpdateTensors all = all_parameters();
  if (tables == TableUpdates::dense) return {all};

  const auto part = [&](std::int64_t first, std::int64_t last, std::int64_t lazy_row) {
    UpdateTensors some = all;
    for (void** row : {&some.p, &some.g, &some.first, &some.second})
      if (*row != nullptr)
        *row = static_cast<std::byte*>(*row) + static_cast<std::size_t>(first) * size_of(parameter_dtype_);
    some.count = last - first;
    some.lazy_row = lazy_row;
    return some;
  };
  std::map<std::int64_t, const Shape*> by_offset;  // offsets in elements
  for (const NodeId i : nodes_.ids())
    if (std::holds_alternative<Embedding>(nodes_[i].op) && !nodes_[i].fixed[0])
      by_offset[static_cast<std::int64_t>(layout_->parameter[i][0].offset_bytes / size_of(parameter_dtype_))] =
          &nodes_[i].params[0];
  std::vector<UpdateTensors> parts;
  std::int64_t done = 0;
  for (const auto& [offset, table] : by_offset) {
    if (offset > done) parts.push_back(part(done, offset, 0));
    parts.push_back(part(offset, offset + table->count(), table->image()));
    done = offset +
           static_cast<std::int64_t>(aligned(static_cast<std::size_t>(table->count()) * size_of(parameter_dtype_)) /
                                     size_of(parameter_dtype_));  // start of the next tensor, aligned for vectors
  }
  if (done < all.count) parts.push_back(part(done, all.count, 0));
  return parts;
}

}  // namespace lamina::planner
