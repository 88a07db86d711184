// Who shares whose memory.
//
// Blocks are trees of views: a member lies in its parent from an offset on, the root is a block of its own. Two blocks
// may be merged at step t when nothing that one side still has to read is written over through the other side:
//   for members a and b of the two sides that overlap: no write of a after t comes at or before the last read of b,
//   and the other way round.

#include "aliases.h"

#include <algorithm>

namespace lamina::planner {
namespace {

class Forest {
 public:
  Forest(const std::vector<View>& views, const std::vector<Accesses>& lives, const std::vector<Node>& nodes,
         Layout layout)
      : lives_(lives), nodes_(nodes), layout_(layout), parent_(views), members_(nodes.size()) {
    for (int i = 0; i < static_cast<int>(nodes.size()); ++i) members_[static_cast<std::size_t>(root(i))].push_back(i);
  }

  int root(int i) const {
    while (parent_[static_cast<std::size_t>(i)].parent >= 0) i = parent_[static_cast<std::size_t>(i)].parent;
    return i;
  }
  std::int64_t offset(int i) const {
    std::int64_t sum = 0;
    for (; parent_[static_cast<std::size_t>(i)].parent >= 0; i = parent_[static_cast<std::size_t>(i)].parent)
      sum += parent_[static_cast<std::size_t>(i)].offset;
    return sum;
  }
  bool is_root(int i) const { return parent_[static_cast<std::size_t>(i)].parent < 0; }

  /// To be called ahead of a unit's merges: what the unit shares is not written by it.
  void next_unit() { shared_.clear(); }

  /// Makes `inner`, the root of its block, lie at the place of `outer`, both of one extent, if at step `when` that
  /// harms nobody. `overwrites`: the unit at that step reads `outer` and writes `inner` over it; otherwise inner simply
  /// is outer.
  bool merge(int inner, int outer, int when, bool overwrites) {
    const int from = root(inner), to = root(outer);
    if (from != inner || from == to) return false;
    const std::int64_t shift = offset(outer);
    for (const int a : members_[static_cast<std::size_t>(from)]) {
      for (const int b : members_[static_cast<std::size_t>(to)]) {
        if (!overlap(offset(a) + shift, a, offset(b), b)) continue;
        const bool in_place = overwrites && a == inner && b == outer;
        const bool silent = std::find(shared_.begin(), shared_.end(), b) != shared_.end();
        if (harms(a, b, overwrites ? when : when + 1, in_place) || harms(b, a, silent ? when + 1 : when, false))
          return false;
      }
    }
    parent_[static_cast<std::size_t>(inner)] = {outer, 0};
    auto& all = members_[static_cast<std::size_t>(to)];
    all.insert(all.end(), members_[static_cast<std::size_t>(from)].begin(),
               members_[static_cast<std::size_t>(from)].end());
    members_[static_cast<std::size_t>(from)].clear();
    if (!overwrites) shared_.push_back(inner);
    return true;
  }

  Places places() const {
    Places places;
    for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
      places.root.push_back(root(i));
      places.offset.push_back(offset(i));
    }
    return places;
  }

 private:
  /// Whether a write of `writer` at or after `when` comes while `reader` is still to be read. In place, the write at
  /// `when` may coincide with the last read: one unit does both, element by element.
  bool harms(int writer, int reader, int when, bool in_place) const {
    int last_read = -1;
    for (const int step : lives_[static_cast<std::size_t>(reader)].reads) last_read = std::max(last_read, step);
    const auto& writes = lives_[static_cast<std::size_t>(writer)].writes;
    return std::any_of(writes.begin(), writes.end(), [&](int step) {
      if (step < when) return false;
      return in_place && step == when ? step < last_read : step <= last_read;
    });
  }

  /// Whether the channels of two members of one block meet.
  bool overlap(std::int64_t a_offset, int a, std::int64_t b_offset, int b) const {
    return a_offset < b_offset + extent(b) && b_offset < a_offset + extent(a);
  }
  std::int64_t extent(int i) const { return dense_pitch(nodes_[static_cast<std::size_t>(i)].shape, layout_); }

  const std::vector<Accesses>& lives_;
  const std::vector<Node>& nodes_;
  Layout layout_;
  std::vector<View> parent_;
  std::vector<std::vector<int>> members_;
  std::vector<int> shared_;
};

}  // namespace

Aliases make_aliases(const Units& units, const Lifetimes& lives, const std::vector<Node>& nodes,
                     const Options& options) {
  Forest values(units.value_view, lives.value, nodes, options.layout);
  Forest gradients(units.gradient_view, lives.gradient, nodes, options.layout);
  Aliases aliases;
  for (const Unit& unit : units.list) aliases.dx_shared.emplace_back(unit.x.size(), false);

  const auto same_extent = [&](int a, int b) {
    return nodes[static_cast<std::size_t>(a)].shape == nodes[static_cast<std::size_t>(b)].shape;
  };
  const int count = static_cast<int>(units.list.size());
  for (int i = 0; i < count && !options.keep_values; ++i) {
    const Unit& unit = units.list[static_cast<std::size_t>(i)];
    for (std::size_t j = 0; j < unit.x.size(); ++j) {
      if (!flag(unit.lowered->y_may_alias_x, j) || !same_extent(unit.x[j], unit.y())) continue;
      if (unit.spec.x[j].pitch != unit.spec.y.pitch || lives.dropped(unit.x[j]) || lives.dropped(unit.y())) continue;
      if (std::count(unit.x.begin(), unit.x.end(), unit.x[j]) > 1) continue;
      if (values.is_root(unit.y()) && values.merge(unit.y(), unit.x[j], i, true)) break;
    }
  }
  for (int i = count - 1; i >= 0 && !options.keep_values; --i) {
    const Unit& unit = units.list[static_cast<std::size_t>(i)];
    if (!unit.backward || units.backward_is_view(i)) continue;
    const int step = units.backward_step(i);
    gradients.next_unit();
    for (std::size_t j = 0; j < unit.x.size(); ++j) {
      const bool shares = flag(unit.lowered->dx_is_dy, j), overwrites = flag(unit.lowered->dx_may_alias_dy, j);
      if (!(shares || overwrites) || !unit.spec.wants_dx[j] || unit.spec.adds_dx[j]) continue;
      if (!same_extent(unit.x[j], unit.y()) || unit.spec.x[j].gradient_pitch != unit.spec.y.gradient_pitch) continue;
      if (std::count(unit.x.begin(), unit.x.end(), unit.x[j]) > 1 || !gradients.is_root(unit.x[j])) continue;
      if (gradients.merge(unit.x[j], unit.y(), step, !shares))
        aliases.dx_shared[static_cast<std::size_t>(i)][j] = shares;
    }
  }
  aliases.value = values.places();
  aliases.gradient = gradients.places();
  return aliases;
}

}  // namespace lamina::planner
