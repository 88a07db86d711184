// Which unit is the first to write each gradient, and which unit masks it.

#include <set>

#include "decisions.h"

namespace lamina::planner {

void set_betas(Units& units, const Nodes& nodes) {
  EachNode<bool> written(units.producer.size(), false);
  std::set<Slot> written_params;
  for (Unit& unit : units.list | std::views::reverse) {  // in the order of backward
    for (std::size_t j = 0; j < unit.x.size(); ++j) {
      if (!unit.spec.wants_dx[j]) continue;
      unit.spec.adds_dx[j] = written[unit.x[j]];
      written[unit.x[j]] = true;
    }
    if (!unit.backward || unit.spec.adds_dw) continue;
    std::vector<Slot> unwritten;
    for (const NodeId node : unit.nodes)
      for (std::size_t k = 0; k < nodes[node].params.size(); ++k) {
        if (nodes[node].fixed[k]) continue;
        const Slot& of = nodes[node].params_of[k];
        const Slot its = of.node < 0 ? Slot{static_cast<int>(node), k} : of;
        if (written_params.contains(its))
          unit.spec.adds_dw = true;
        else
          unwritten.push_back(its);
      }
    written_params.insert(unwritten.begin(), unwritten.end());
    if (unit.spec.adds_dw) units.cleared.insert(units.cleared.end(), unwritten.begin(), unwritten.end());
  }
}

void set_masks(Units& units, const Backend& backend, const Options& options) {
  if (!options.fuse || options.keep_values) return;
  for (Unit& reader : units.list) {
    const UnitId producer = units.producer[reader.x[0]];
    if (producer == none<UnitId> || !reader.spec.wants_dx[0] || units.readers[reader.x[0]].size() != 1) continue;
    Unit& unit = units.list[producer];
    if (unit.spec.tail.empty() || !std::holds_alternative<Relu>(unit.spec.tail.back())) continue;
    reader.spec.masks_dx = unit.spec.dy_is_masked = backend.masks_dx(unit.spec, reader.spec);
  }
}

}  // namespace lamina::planner
