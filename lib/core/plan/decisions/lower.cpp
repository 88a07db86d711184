// The backend's kernels for each unit.

#include <algorithm>
#include <vector>

#include "decisions.h"
#include "lamina/error.h"

namespace lamina::planner {

void lower(Units& units, const Nodes& nodes, Backend& backend) {
  std::vector<const Unit*> distinct;
  for (Unit& unit : units.list) {
    const auto same = std::ranges::find_if(
        distinct, [&](const Unit* other) { return other->spec == unit.spec && other->choice == unit.choice; });
    if (same != distinct.end()) {
      unit.lowered = (*same)->lowered;
      continue;
    }
    if (backend.while_planning) backend.while_planning();
    Choice by_rule = unit.choice;
    by_rule.measure = false;  // measured choices have names already, or are measured later
    const auto at_node = [&](const Error& error) { return "node " + nodes[unit.nodes[0]].name + ": " + error.what(); };
    try {
      unit.lowered = std::make_shared<const Lowered>(backend.lower(unit.spec, by_rule));
    } catch (const Unsupported& error) {
      throw Unsupported(at_node(error));
    } catch (const UsageError& error) {
      throw UsageError(at_node(error));
    }
    distinct.push_back(&unit);
  }
}

}  // namespace lamina::planner
