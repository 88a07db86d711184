// Which values and gradients share memory.
//
// Each value starts as a separate block or, if it is a view, as a part of its parent's block. All members of a block
// have one element type. A merge at step t puts one block (of `inner`) into another (at the place of `outer`). Neither
// may destroy content of the other that is still to be read. So where members a and b overlap, neither is written after
// t as long as the other is still to be read. A write at t counts, too, with two exceptions. A unit that works element
// by element may write inner over outer if it is the last reader of outer. A gradient that shares the memory of another
// gradient is not written at all.

#include <algorithm>
#include <map>
#include <set>

#include "decisions.h"

namespace lamina::planner {
namespace {

/// The members of a block that have the same place in it. They are checked together, so that the cost of a chain of
/// in-place ops grows linearly with its length.
struct Region {
  std::int64_t offset, extent;                  // offset and extent in elements of the block
  std::map<Step, std::vector<NodeId>> writers;  // members by the step that writes them
  std::multiset<Step> last_reads;               // steps of the last reads of the members that are read

  Step last_read() const { return last_reads.empty() ? none<Step> : *last_reads.rbegin(); }
  bool overlaps(const Region& other, std::int64_t shift) const {
    return offset + shift < other.offset + other.extent && other.offset < offset + shift + extent;
  }
  bool is_at(std::int64_t place, std::int64_t length) const { return offset == place && extent == length; }
  /// Whether a member is written after `when` and no later than the last read in the other region.
  bool writes_into(const Region& other, Step when) const {
    const auto next = writers.upper_bound(when);
    return next != writers.end() && next->first <= other.last_read();
  }
  void take(const Region& other) {
    for (const auto& [step, members] : other.writers) {
      std::vector<NodeId>& mine = writers[step];
      mine.insert(mine.end(), members.begin(), members.end());
    }
    last_reads.insert(other.last_reads.begin(), other.last_reads.end());
  }
};

class Forest {
 public:
  Forest(const EachNode<View>& views, const EachNode<Accesses>& lives, const Nodes& nodes, Layout layout)
      : members_(nodes.size()), regions_(nodes.size()) {
    for (const NodeId i : nodes.ids()) {
      NodeId root = i;
      std::int64_t offset = 0;
      for (; views[root].parent != none<NodeId>; root = views[root].parent) offset += views[root].offset;
      places_.root.push_back(root);
      places_.offset.push_back(offset);
      members_[root].push_back(i);

      const Accesses& life = lives[i];
      extent_.push_back(dense_pitch(nodes[i].shape, layout));
      last_read_.push_back(life.reads.empty() ? none<Step> : std::ranges::max(life.reads));
      Region region{offset, extent_[i], {}, {}};
      for (const Step step : life.writes) region.writers[step].push_back(i);
      if (!life.reads.empty()) region.last_reads.insert(last_read_[i]);
      add(root, region);
    }
  }

  bool is_root(NodeId i) const { return root(i) == i; }

  /// Called before a unit's merges. Forgets the gradients that the previous unit did not write because they are shared.
  void next_unit() { shared_.clear(); }

  /// Gives `inner` the place of `outer`, which has the same extent. Returns false if `inner` is not the root of another
  /// block, or content that is still to be read would be lost. With `overwrites`, the unit at step `when` reads `outer`
  /// and writes `inner` over it. Without it, inner and outer have the same values.
  bool merge(NodeId inner, NodeId outer, Step when, bool overwrites) {
    const NodeId from = root(inner), to = root(outer);
    if (from != inner || from == to) return false;
    const std::int64_t shift = places_.offset[outer];
    for (const Region& a : regions_[from])
      for (const Region& b : regions_[to])
        if (a.overlaps(b, shift) && harms(a, inner, b, outer, when, overwrites)) return false;

    for (Region region : regions_[from]) {
      region.offset += shift;
      add(to, region);
    }
    regions_[from].clear();
    for (const NodeId i : members_[from]) {
      places_.root[i] = to;
      places_.offset[i] += shift;
      members_[to].push_back(i);
    }
    members_[from].clear();
    if (!overwrites) shared_.push_back(inner);
    return true;
  }

  const Places& places() const { return places_; }

 private:
  NodeId root(NodeId i) const { return places_.root[i]; }

  void add(NodeId root, const Region& region) {
    std::vector<Region>& regions = regions_[root];
    const auto same = std::find_if(regions.begin(), regions.end(),
                                   [&](const Region& other) { return other.is_at(region.offset, region.extent); });
    if (same == regions.end())
      regions.push_back(region);
    else
      same->take(region);
  }

  /// Whether, after a merge at step `when`, the writes of one region destroy what is still to be read from the other.
  bool harms(const Region& a, NodeId inner, const Region& b, NodeId outer, Step when, bool overwrites) const {
    if (a.writes_into(b, when) || b.writes_into(a, when)) return true;
    if (const auto now = b.writers.find(when); now != b.writers.end() && a.last_read() >= when)
      for (const NodeId writer : now->second)
        if (std::ranges::find(shared_, writer) == shared_.end()) return true;
    const auto now = a.writers.find(when);
    if (!overwrites || now == a.writers.end()) return false;
    // The unit reads outer and writes inner element by element, so this write may be at the step of outer's last read.
    auto late_reads = std::distance(b.last_reads.lower_bound(when), b.last_reads.end());
    const bool only_inner = now->second.size() == 1 && now->second[0] == inner;
    const bool has_outer = b.is_at(places_.offset[outer], extent_[outer]);
    if (only_inner && has_outer && last_read_[outer] == when) --late_reads;
    return late_reads > 0;
  }

  Places places_;
  EachNode<std::vector<NodeId>> members_;  // members by root
  EachNode<std::vector<Region>> regions_;  // regions by root
  EachNode<std::int64_t> extent_;
  EachNode<Step> last_read_;  // step of the last read; none: never read
  std::vector<NodeId> shared_;
};

}  // namespace

Aliases make_aliases(const Units& units, const Lifetimes& lives, const Nodes& nodes, const Options& options) {
  Forest values(units.value_view, lives.value, nodes, options.layout);
  Forest gradients(units.gradient_view, lives.gradient, nodes, options.layout);
  Aliases aliases;
  for (const Unit& unit : units.list) aliases.dx_shared.push_back(std::vector<bool>(unit.x.size(), false));

  /// Whether x[j] is read once by the unit and has the extent and the type of y.
  const auto alike = [&](const Unit& unit, std::size_t j) {
    return nodes[unit.x[j]].shape == nodes[unit.y()].shape && unit.spec.x[j].dtype == unit.spec.y.dtype &&
           std::ranges::count(unit.x, unit.x[j]) == 1;
  };
  const auto share_values = [&](UnitId id) {
    const Unit& unit = units.list[id];
    for (std::size_t j = 0; j < unit.x.size(); ++j) {
      if (!flag(unit.lowered->y_may_alias_x, j) || !alike(unit, j) || unit.spec.x[j].pitch != unit.spec.y.pitch)
        continue;
      if (lives.dropped(unit.x[j]) || lives.dropped(unit.y()) || !values.is_root(unit.y())) continue;
      if (values.merge(unit.y(), unit.x[j], units.forward_step(id), true)) break;
    }
  };
  const auto share_gradients = [&](UnitId id) {
    const Unit& unit = units.list[id];
    if (!unit.backward || units.backward_is_view(id)) return;
    gradients.next_unit();
    for (std::size_t j = 0; j < unit.x.size(); ++j) {
      const bool shares = flag(unit.lowered->dx_is_dy, j), overwrites = flag(unit.lowered->dx_may_alias_dy, j);
      if (!(shares || overwrites) || !unit.spec.wants_dx[j] || unit.spec.adds_dx[j]) continue;
      if (!alike(unit, j) || unit.spec.x[j].gradient_pitch != unit.spec.y.gradient_pitch) continue;
      if (gradients.is_root(unit.x[j]) && gradients.merge(unit.x[j], unit.y(), units.backward_step(id), !shares))
        aliases.dx_shared[id][j] = shares;
    }
  };
  if (!options.keep_values) {
    for (const UnitId unit : units.list.ids()) share_values(unit);
    for (const UnitId unit : units.list.ids() | std::views::reverse) share_gradients(unit);
  }
  aliases.value = values.places();
  aliases.gradient = gradients.places();
  return aliases;
}

}  // namespace lamina::planner
