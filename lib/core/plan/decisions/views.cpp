// Concat and Slice without copies: which values and gradients are parts of others, and the pitches that follow.

#include <algorithm>

#include "decisions.h"
#include "lib/core/units/box.h"

namespace lamina::planner {
namespace {

/// Elements from the start of a tensor to the start of its channel `first`.
std::int64_t channel_offset(const Shape& shape, Layout layout, int first) {
  return layout == Layout::nchw ? first * shape.plane() : first;
}

class Views {
 public:
  Views(Units& units, const Nodes& nodes, const Backend& backend, const Options& options)
      : units_(units), nodes_(nodes), options_(options) {
    for (const Unit& unit : units.list) takes_pitch_.push_back(backend.takes_pitch(unit.spec));
  }

  void concat(UnitId id) {
    const Unit& unit = units_.list[id];
    for (const NodeId x : unit.x)
      if (std::ranges::count(unit.x, x) > 1 || nodes_.is_input(x) || !same_type(x, unit.y())) return;
    const auto all = [&](auto holds) { return std::ranges::all_of(unit.x, holds); };
    if (!movable(unit.y()) || !all([&](NodeId x) { return movable(x); })) return;
    const auto is_free = [](const EachNode<View>& views, NodeId x) { return views[x].parent == none<NodeId>; };
    if (all([&](NodeId x) { return is_free(units_.value_view, x); })) place_parts(units_.value_view, unit);
    // The gradient of an input is a part of dy only if concat is its first writer and later writers may add to it. No
    // writer may add to a dy that belongs to the caller.
    if (unit.backward && unit.y() != nodes_.output() &&
        all([&](NodeId x) { return units_.readers[x].back() == id && is_free(units_.gradient_view, x); }))
      place_parts(units_.gradient_view, unit);
  }

  void slice(UnitId id) {
    const Unit& unit = units_.list[id];
    View& view = units_.value_view[unit.y()];
    if (unit.y() == nodes_.output() || view.parent != none<NodeId>) return;
    if (!same_type(unit.x[0], unit.y()) || !movable(unit.y()) || !movable(unit.x[0])) return;
    const int first = std::get<Slice>(unit.spec.op).first;
    view = {unit.x[0], channel_offset(nodes_[unit.x[0]].shape, options_.layout, first)};
  }

 private:
  /// A view cannot convert between types.
  bool same_type(NodeId a, NodeId b) const { return units_.dtype[a] == units_.dtype[b]; }

  /// Whether every unit that touches the value takes a pitch.
  bool movable(NodeId value) const {
    const UnitId producer = units_.producer[value];
    return (producer == none<UnitId> || takes_pitch_[producer]) &&
           std::ranges::all_of(units_.readers[value], [&](UnitId unit) { return takes_pitch_[unit]; });
  }

  void place_parts(EachNode<View>& views, const Unit& concat) {
    int first = 0;
    for (const NodeId x : concat.x) {
      views[x] = {concat.y(), channel_offset(nodes_[concat.y()].shape, options_.layout, first)};
      first += nodes_[x].shape.c;
    }
  }

  Units& units_;
  const Nodes& nodes_;
  const Options& options_;
  EachUnit<bool> takes_pitch_;
};

}  // namespace

void set_views(Units& units, const Nodes& nodes, const Backend& backend, const Options& options) {
  units.value_view = units.gradient_view = EachNode<View>(nodes.size());
  if (options.keep_values) return;
  Views views(units, nodes, backend, options);
  for (const UnitId unit : units.list.ids())
    if (std::holds_alternative<Concat>(units.list[unit].spec.op) && may_be_view(units.list[unit].spec.op))
      views.concat(unit);
  for (const UnitId unit : units.list.ids())
    if (std::holds_alternative<Slice>(units.list[unit].spec.op) && may_be_view(units.list[unit].spec.op))
      views.slice(unit);
}

void set_pitches(Units& units, const Nodes& nodes, const Options& options) {
  const auto pitch = [&](const EachNode<View>& views, NodeId value) {
    while (views[value].parent != none<NodeId>) value = views[value].parent;
    return dense_pitch(nodes[value].shape, options.layout);
  };
  const auto set = [&](TensorSpec& spec, NodeId value) {
    spec.pitch = pitch(units.value_view, value);
    spec.gradient_pitch = pitch(units.gradient_view, value);
  };
  for (Unit& unit : units.list) {
    for (std::size_t j = 0; j < unit.x.size(); ++j) set(unit.spec.x[j], unit.x[j]);
    set(unit.spec.y, unit.y());
  }
}

}  // namespace lamina::planner
