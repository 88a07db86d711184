// Which algorithms backends take for the layers of networks, and why.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/measure/layers.h"
#include "describe.h"

namespace lamina::bench {
namespace {

constexpr const char* only_one = "the only algorithm";

struct Line {
  std::string layers, passes, algorithm, reason;
};

/// As a plan would lower the network; no plan is made.
std::vector<Line> lowered(Session& session, const Config& c) {
  const Graph graph = session.plans.graph(c);
  Backend& backend = session.backends.at(c.backend);
  std::vector<Line> lines;
  for (const PlannedUnit& unit : planned_units(graph, backend, session.plans.options(c)))
    for (const Lowered::Step& step : backend.lower(unit.spec, unit.choice).steps) {
      std::string reason = step.reason.empty() ? only_one : step.reason;
      lines.push_back({layers_text(graph, unit.nodes), passes_text(step.passes), step.algorithm, std::move(reason)});
    }
  return lines;
}

/// As they are in a plan that measured them.
std::vector<Line> measured(Session& session, const Config& c) {
  const Plan plan(session.plans.graph(c), session.backends.usable(c.backend), session.plans.options(c));
  std::vector<Line> lines;
  for (const Call& call : plan.calls()) {
    const bool alone = plan.backend().algorithms(*call.spec, call.passes.front()).size() < 2;
    std::string reason = alone ? only_one : "measured";
    if (!call.tied.empty()) reason += fmt::format(", tied with {}", fmt::join(call.tied, ", "));
    lines.push_back({layers_text(plan.graph(), call.nodes), passes_text(call.passes), call.algorithm, reason});
  }
  return lines;
}

}  // namespace

std::string describe_algorithms(Session& session, const DescribeOptions& options) {
  TextTables tables(options.format, {{"network"}, {"backend"}, {"batch", true}},
                    {{"layer"}, {"pass"}, {"algorithm"}, {"reason"}});
  std::string all;
  for (const Config& c : configs(session.backends, options.configs, options.net, options.networks)) {
    const bool measures = options.plan.choice.measure;
    for (const Line& line : measures ? measured(session, c) : lowered(session, c))
      tables.add({c.network, c.backend, fmt::format("{}", c.batch)},
                 {line.layers, line.passes, line.algorithm, line.reason});
    if (options.format == Format::text)
      all += fmt::format("{}{}, {}, {}, {}\n\n{}", all.empty() ? "" : "\n", to_string(c), to_string(c.dtype),
                         to_string(c.layout), mode_name(options.plan.mode), tables.take());
  }
  return options.format == Format::text ? all : tables.take();
}

}  // namespace lamina::bench
