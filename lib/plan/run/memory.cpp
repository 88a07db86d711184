// The buffers of a plan, and the tensors in them.

#include "memory.h"

#include <cstddef>

namespace lamina::planner {

Memory::Memory(Device& device, const PlanLayout& layout, const Nodes& nodes, const Options& options)
    : layout_(&layout),
      nodes_(nodes),
      dtype_(options.dtype),
      order_(options.layout),
      parameters_(device, layout.parameter_bytes),
      parameter_gradients_(device, layout.memory.parameters - layout.parameter_bytes),
      state_(device, layout.memory.state),
      inputs_(device, layout.memory.inputs),
      arena_(device, layout.memory.arena),
      prepared_(device, layout.memory.prepared) {
  constexpr unsigned char nan = 0xff;
  device.fill(parameter_gradients_.data(), 0, parameter_gradients_.size_bytes());
  device.fill(inputs_.data(), nan, inputs_.size_bytes());
  device.fill(arena_.data(), nan, arena_.size_bytes());
}

void* Memory::address(const Location& location) const {
  const auto in = [&](const Buffer& buffer) -> void* {
    return static_cast<std::byte*>(buffer.data()) + location.offset_bytes;
  };
  switch (location.room) {
    case Room::none: return nullptr;
    case Room::parameters: return in(parameters_);
    case Room::parameter_gradients: return in(parameter_gradients_);
    case Room::state: return in(state_);
    case Room::inputs: return in(inputs_);
    case Room::arena: return in(arena_);
    case Room::prepared: return in(prepared_);
  }
  return nullptr;
}

Tensor Memory::dense(const Location& location, const Shape& shape, DType type) const {
  return {address(location), shape, type, order_, dense_pitch(shape, order_)};
}

Tensor Memory::placed(const EachNode<Location>& locations, const Places& places, NodeId i) const {
  const Shape& root = nodes_[places.root[i]].shape;
  return {address(locations[i]), nodes_[i].shape, dtype_, order_, dense_pitch(root, order_)};
}

Tensor Memory::value(NodeId i) const { return placed(layout_->value, layout_->aliases.value, i); }

Tensor Memory::kept_value(NodeId i) const {
  return layout_->lives.dropped(i) ? dense(layout_->remade[i], nodes_[i].shape, dtype_) : value(i);
}

Tensor Memory::gradient(NodeId i) const { return placed(layout_->gradient, layout_->aliases.gradient, i); }

Tensor Memory::parameter(NodeId i, std::size_t k) const {
  return dense(layout_->parameter[i][k], nodes_[i].params[k], dtype_);
}

Tensor Memory::parameter_gradient(NodeId i, std::size_t k) const {
  const auto& locations = layout_->parameter_gradient[i];
  return locations.empty() ? Tensor{} : dense(locations[k], nodes_[i].params[k], dtype_);
}

Tensor Memory::state(NodeId i, std::size_t k) const {
  return dense(layout_->state[i][k], nodes_[i].state[k], state_dtype(nodes_[i].op, dtype_));
}

}  // namespace lamina::planner
