// The algorithms that the caller asks for, by unit. Where the caller names none, the backend picks (pick() in
// lib/backends/common/algorithms.h).

#include <algorithm>
#include <set>
#include <string>

#include "decisions.h"
#include "lamina/error.h"
#include "lib/core/units/spec_passes.h"

namespace lamina::planner {
namespace {

/// The choice for one of the unit's nodes, by name; the last node with a choice has precedence. Null: there is none.
const Choice* by_name(const Unit& unit, const Nodes& nodes, const Options& options) {
  for (auto node = unit.nodes.rbegin(); node != unit.nodes.rend(); ++node)
    if (const auto named = options.choice_of.find(nodes[*node].name); named != options.choice_of.end())
      return &named->second;
  return nullptr;
}

/// Throws UsageError if the choice names an unknown algorithm for a pass that is not lowered. The backend never sees
/// such a pass, so it would not report the name.
void check_unlowered(const Unit& unit, const Nodes& nodes, const Backend& backend) {
  for (std::size_t p = 0; p < std::size(algorithm_passes); ++p) {
    const std::string& wanted = unit.choice.algorithm[p];
    if (wanted.empty() || wants(unit.spec, algorithm_passes[p])) continue;
    const std::vector<std::string> known = backend.algorithms(unit.spec, algorithm_passes[p]);
    if (known.empty() || std::find(known.begin(), known.end(), wanted) != known.end()) continue;
    throw UsageError("node " + nodes[unit.nodes.front()].name + " has no algorithm " + wanted + " for pass " +
                     std::string(to_string(algorithm_passes[p])) + "; " + near_names(wanted, known));
  }
}

}  // namespace

void set_choices(Units& units, const Nodes& nodes, const Backend& backend, const Options& options) {
  std::vector<Unit*> others;  // units without a choice by name
  for (Unit& unit : units.list) {
    const Choice* const named = by_name(unit, nodes, options);
    unit.choice = named != nullptr ? *named : options.choice;
    named != nullptr ? check_unlowered(unit, nodes, backend) : others.push_back(&unit);
  }
  for (std::size_t p = 0; p < std::size(algorithm_passes); ++p) {
    const std::string& wanted = options.choice.algorithm[p];
    if (wanted.empty() || others.empty()) continue;
    std::set<std::string> known;
    for (Unit* const unit : others) {
      const std::vector<std::string> algorithms = backend.algorithms(unit->spec, algorithm_passes[p]);
      known.insert(algorithms.begin(), algorithms.end());
      if (std::ranges::find(algorithms, wanted) == algorithms.end()) unit->choice.algorithm[p].clear();
    }
    if (known.contains(wanted)) continue;
    throw UsageError("no node has an algorithm " + wanted + " for pass " + std::string(to_string(algorithm_passes[p])) +
                     "; " + near_names(wanted, {known.begin(), known.end()}));
  }
}

}  // namespace lamina::planner
