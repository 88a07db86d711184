// What the backend makes of each unit.

#include <algorithm>
#include <string>
#include <unordered_map>

#include "decisions.h"
#include "lamina/error.h"

namespace lamina::planner {

void lower(Units& units, const Nodes& nodes, Backend& backend) {
  std::unordered_map<std::string, std::vector<const Unit*>> distinct;  // by the text of their specs
  for (Unit& unit : units.list) {
    std::vector<const Unit*>& alike = distinct[to_string(unit.spec)];
    const auto same = std::ranges::find_if(alike, [&](const Unit* other) { return other->choice == unit.choice; });
    if (same != alike.end()) {
      unit.lowered = (*same)->lowered;
      continue;
    }
    Choice by_rule = unit.choice;
    by_rule.measure = false;  // measured choices already have names, or are measured later
    const auto at_node = [&](const Error& error) { return "node " + nodes[unit.nodes[0]].name + ": " + error.what(); };
    try {
      unit.lowered = std::make_shared<const Lowered>(backend.lower(unit.spec, by_rule));
    } catch (const Unsupported& error) {
      throw Unsupported(at_node(error));
    } catch (const UsageError& error) {
      throw UsageError(at_node(error));
    }
    alike.push_back(&unit);
  }
}

}  // namespace lamina::planner
