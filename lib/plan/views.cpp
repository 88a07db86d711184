// Concat and Slice without copies.

#include "views.h"

#include <algorithm>

namespace lamina::planner {
namespace {

/// Elements from the first of a tensor to the first of its channel `first`.
std::int64_t channel_offset(const Shape& shape, Layout layout, int first) {
  return layout == Layout::nchw ? first * shape.plane() : first;
}

class Views {
 public:
  Views(Units& units, const std::vector<Node>& nodes, const Backend& backend, const Options& options)
      : units_(units), nodes_(nodes), options_(options) {
    for (const Unit& unit : units.list) takes_pitch_.push_back(backend.takes_pitch(unit.spec));
  }

  void concat(int index) {
    const Unit& unit = units_.list[static_cast<std::size_t>(index)];
    for (std::size_t j = 0; j < unit.x.size(); ++j)
      if (std::count(unit.x.begin(), unit.x.end(), unit.x[j]) > 1 || is_input(unit.x[j])) return;
    const auto all = [&](auto holds) { return std::all_of(unit.x.begin(), unit.x.end(), holds); };
    if (!movable(unit.y()) || !all([&](int x) { return movable(x); })) return;
    if (all([&](int x) { return units_.value_view[static_cast<std::size_t>(x)].parent < 0; }))
      place(units_.value_view, unit);
    // The gradient of an input is a part of dy only where concat writes it first, and later writers may add to it: not
    // where dy is the caller's.
    const bool is_output = unit.y() == static_cast<int>(nodes_.size()) - 1;
    if (unit.backward && !is_output && all([&](int x) {
          return units_.readers[static_cast<std::size_t>(x)].back() == index &&
                 units_.gradient_view[static_cast<std::size_t>(x)].parent < 0;
        }))
      place(units_.gradient_view, unit);
  }

  void slice(int index) {
    const Unit& unit = units_.list[static_cast<std::size_t>(index)];
    const auto y = static_cast<std::size_t>(unit.y());
    const bool is_output = y == nodes_.size() - 1;
    if (is_output || units_.value_view[y].parent >= 0 || !movable(unit.y()) || !movable(unit.x[0])) return;
    const Shape& x = nodes_[static_cast<std::size_t>(unit.x[0])].shape;
    units_.value_view[y] = {unit.x[0], channel_offset(x, options_.layout, std::get<Slice>(unit.spec.op).first)};
  }

 private:
  bool is_input(int value) const { return std::holds_alternative<Input>(nodes_[static_cast<std::size_t>(value)].op); }

  /// Whether every unit that touches the value takes a pitch.
  bool movable(int value) const {
    const int producer = units_.producer[static_cast<std::size_t>(value)];
    const auto& readers = units_.readers[static_cast<std::size_t>(value)];
    return (producer < 0 || takes_pitch_[static_cast<std::size_t>(producer)]) &&
           std::all_of(readers.begin(), readers.end(),
                       [&](int u) { return takes_pitch_[static_cast<std::size_t>(u)]; });
  }

  void place(std::vector<View>& views, const Unit& concat) {
    const Shape& y = nodes_[static_cast<std::size_t>(concat.y())].shape;
    int first = 0;
    for (const int x : concat.x) {
      views[static_cast<std::size_t>(x)] = {concat.y(), channel_offset(y, options_.layout, first)};
      first += nodes_[static_cast<std::size_t>(x)].shape.c;
    }
  }

  Units& units_;
  const std::vector<Node>& nodes_;
  const Options& options_;
  std::vector<bool> takes_pitch_;
};

}  // namespace

void set_views(Units& units, const std::vector<Node>& nodes, const Backend& backend, const Options& options) {
  units.value_view.assign(nodes.size(), {});
  units.gradient_view.assign(nodes.size(), {});
  if (options.keep_values) return;
  Views views(units, nodes, backend, options);
  const auto each = [&](auto op, auto&& visit) {
    for (std::size_t i = 0; i < units.list.size(); ++i)
      if (std::holds_alternative<decltype(op)>(units.list[i].spec.op)) visit(static_cast<int>(i));
  };
  each(Concat{}, [&](int i) { views.concat(i); });
  each(Slice{.first = 0, .channels = 1}, [&](int i) { views.slice(i); });
}

}  // namespace lamina::planner
