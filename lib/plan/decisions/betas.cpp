// Which unit writes each gradient first.

#include "decisions.h"

namespace lamina::planner {

void set_betas(Units& units) {
  EachNode<bool> written(units.producer.size(), false);
  for (Unit& unit : units.list | std::views::reverse)  // as backward runs
    for (std::size_t j = 0; j < unit.x.size(); ++j) {
      if (!unit.spec.wants_dx[j]) continue;
      unit.spec.adds_dx[j] = written[unit.x[j]];
      written[unit.x[j]] = true;
    }
}

}  // namespace lamina::planner
