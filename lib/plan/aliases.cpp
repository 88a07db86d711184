// Who shares whose memory.
//
// Each value starts as a block of its own or, if it is a view, as a part of its parent's. Two blocks may be merged at
// step t if neither side writes over what the other still has to read: for members a and b of the two sides that
// overlap, no write of a after t comes at or before the last read of b, and the other way round. A write at t itself
// counts as well, with two exceptions: a unit that works element by element may write inner over outer if it is the
// last to read outer; and a gradient that shares the memory of another one is not written at all.

#include "aliases.h"

#include <algorithm>
#include <map>
#include <set>

namespace lamina::planner {
namespace {

/// The members of a block that have the same place in it. They are asked together, so that a chain of in-place ops
/// costs no more than its length.
struct Region {
  std::int64_t offset, extent;              // in elements of the block
  std::map<int, std::vector<int>> writers;  // members by the step that writes them
  std::multiset<int> last_reads;            // of each member that is read

  int last_read() const { return last_reads.empty() ? -1 : *last_reads.rbegin(); }
  bool overlaps(const Region& other, std::int64_t shift) const {
    return offset + shift < other.offset + other.extent && other.offset < offset + shift + extent;
  }
  bool is_at(std::int64_t place, std::int64_t length) const { return offset == place && extent == length; }
  /// Whether a member is written after `when` and not after the last read of the other's.
  bool writes_into(const Region& other, int when) const {
    const auto next = writers.upper_bound(when);
    return next != writers.end() && next->first <= other.last_read();
  }
  void take(const Region& other) {
    for (const auto& [step, members] : other.writers) {
      std::vector<int>& mine = writers[step];
      mine.insert(mine.end(), members.begin(), members.end());
    }
    last_reads.insert(other.last_reads.begin(), other.last_reads.end());
  }
};

class Forest {
 public:
  Forest(const std::vector<View>& views, const std::vector<Accesses>& lives, const std::vector<Node>& nodes,
         Layout layout)
      : members_(nodes.size()), regions_(nodes.size()) {
    for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
      int root = i;
      std::int64_t offset = 0;
      for (; view_of(views, root).parent >= 0; root = view_of(views, root).parent)
        offset += view_of(views, root).offset;
      places_.root.push_back(root);
      places_.offset.push_back(offset);
      members_[static_cast<std::size_t>(root)].push_back(i);

      const Accesses& life = lives[static_cast<std::size_t>(i)];
      extent_.push_back(dense_pitch(nodes[static_cast<std::size_t>(i)].shape, layout));
      last_read_.push_back(life.reads.empty() ? -1 : *std::max_element(life.reads.begin(), life.reads.end()));
      Region region{offset, extent_.back(), {}, {}};
      for (const int step : life.writes) region.writers[step].push_back(i);
      if (last_read_.back() >= 0) region.last_reads.insert(last_read_.back());
      add(root, region);
    }
  }

  bool is_root(int i) const { return root(i) == i; }

  /// To be called before a unit's merges: what the unit shares is not written by it.
  void next_unit() { shared_.clear(); }

  /// Gives `inner`, the root of its block, the place of `outer`, if both have one extent and if at step `when` that
  /// harms nobody. `overwrites`: the unit at that step reads `outer` and writes `inner` over it; otherwise inner simply
  /// is outer.
  bool merge(int inner, int outer, int when, bool overwrites) {
    const int from = root(inner), to = root(outer);
    if (from != inner || from == to) return false;
    const std::int64_t shift = places_.offset[static_cast<std::size_t>(outer)];
    for (const Region& a : regions_of(from))
      for (const Region& b : regions_of(to))
        if (a.overlaps(b, shift) && harms(a, inner, b, outer, when, overwrites)) return false;

    for (Region region : regions_of(from)) {
      region.offset += shift;
      add(to, region);
    }
    regions_of(from).clear();
    for (const int i : members_of(from)) {
      places_.root[static_cast<std::size_t>(i)] = to;
      places_.offset[static_cast<std::size_t>(i)] += shift;
      members_of(to).push_back(i);
    }
    members_of(from).clear();
    if (!overwrites) shared_.push_back(inner);
    return true;
  }

  const Places& places() const { return places_; }

 private:
  static const View& view_of(const std::vector<View>& views, int i) { return views[static_cast<std::size_t>(i)]; }
  int root(int i) const { return places_.root[static_cast<std::size_t>(i)]; }
  std::vector<int>& members_of(int root) { return members_[static_cast<std::size_t>(root)]; }
  std::vector<Region>& regions_of(int root) { return regions_[static_cast<std::size_t>(root)]; }

  void add(int root, const Region& region) {
    std::vector<Region>& regions = regions_of(root);
    const auto same = std::find_if(regions.begin(), regions.end(),
                                   [&](const Region& other) { return other.is_at(region.offset, region.extent); });
    if (same == regions.end())
      regions.push_back(region);
    else
      same->take(region);
  }

  /// Whether a merge at step `when` would let one region's writes destroy what is still to be read of the other.
  bool harms(const Region& a, int inner, const Region& b, int outer, int when, bool overwrites) const {
    if (a.writes_into(b, when) || b.writes_into(a, when)) return true;
    if (const auto now = b.writers.find(when); now != b.writers.end() && a.last_read() >= when)
      for (const int writer : now->second)
        if (std::find(shared_.begin(), shared_.end(), writer) == shared_.end()) return true;
    const auto now = a.writers.find(when);
    if (!overwrites || now == a.writers.end()) return false;
    // The unit reads outer and writes inner element by element: this write may come with outer's last read.
    auto late_reads = std::distance(b.last_reads.lower_bound(when), b.last_reads.end());
    const bool only_inner = now->second.size() == 1 && now->second[0] == inner;
    const bool has_outer =
        b.is_at(places_.offset[static_cast<std::size_t>(outer)], extent_[static_cast<std::size_t>(outer)]);
    if (only_inner && has_outer && last_read_[static_cast<std::size_t>(outer)] == when) --late_reads;
    return late_reads > 0;
  }

  Places places_;
  std::vector<std::vector<int>> members_;     // by root
  std::vector<std::vector<Region>> regions_;  // by root
  std::vector<std::int64_t> extent_;          // by node
  std::vector<int> last_read_;                // by node; -1: never
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
