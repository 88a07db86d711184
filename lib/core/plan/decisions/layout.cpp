// The list of a plan's decisions before it has memory. After them, run/bind.cpp binds the kernels to their tensors.

#include "layout.h"

#include "decisions.h"

namespace lamina::planner {

Units make_units(const Nodes& nodes, const Backend& backend, const Options& options) {
  check(nodes, backend, options);
  Units units = fuse(nodes, backend, options);
  set_betas(units, nodes);
  set_views(units, nodes, backend, options);
  set_pitches(units, nodes, options);
  set_choices(units, nodes, backend, options);
  return units;
}

PlanLayout make_layout(const Graph& graph, Backend& backend, const Options& options) {
  const Nodes nodes(graph);
  PlanLayout layout;
  layout.units = make_units(nodes, backend, options);
  lower(layout.units, nodes, backend);
  layout.lives = make_lifetimes(layout.units, nodes, options);
  layout.aliases = make_aliases(layout.units, layout.lives, nodes, options);
  place(layout, nodes, options);
  return layout;
}

}  // namespace lamina::planner

namespace lamina {

MemoryReport predict_memory(const Graph& graph, Backend& backend, const Options& options) {
  return planner::make_layout(graph, backend, options).memory;
}

}  // namespace lamina
