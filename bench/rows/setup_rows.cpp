// Rows setup/...: what comes before the first timed pass. The device with its library, opened once in a process; the
// graph, the plan (laid out, allocated, filled with random numbers), and the first pass over it. What a library loads
// when it is first needed is in the first pass of the first such row of its backend, and in no later one.

#include <fmt/format.h>

#include <optional>

#include "measure/stopwatch.h"
#include "rows.h"

namespace lamina::bench {
namespace {

class SetupMeasurement final : public Measurement {
 public:
  SetupMeasurement(Workshop& workshop, const Case& c)
      : workshop_(&workshop),
        case_(c),
        opened_(workshop.opened(c.backend)),
        stopwatch_(workshop.backend(c.backend).device()) {}

  std::vector<Sample> pass() override {
    plan_.reset();
    std::optional<Graph> graph;
    const Sample built = stopwatch_.time([&] { graph.emplace(workshop_->graph(case_)); });
    const Sample planned = stopwatch_.time([&] {
      plan_.emplace(*graph, workshop_->backend(case_.backend), workshop_->plan_options(case_, Mode::training));
    });
    const Sample first = stopwatch_.time([&] {
      plan_->forward();
      plan_->backward();
    });
    return {opened_, built, planned, first};
  }

  MemoryReport memory() const override { return plan_ ? plan_->memory() : MemoryReport{}; }

 private:
  Workshop* workshop_;
  Case case_;
  Sample opened_;
  Stopwatch stopwatch_;
  std::optional<Plan> plan_;
};

}  // namespace

std::vector<Row> setup_rows(Workshop& workshop, const Case& c) {
  const Graph graph = workshop.graph(c);
  const GraphCost cost = graph_cost(graph, c.dtype, protocol_of(c, workshop.settings()).input_gradient);
  auto group = std::make_shared<Group>();
  group->title = fmt::format("setup of {} on {}", c.network, c.backend);
  group->facts = c;
  group->first_calls = true;
  group->parts = {"device", "graph", "plan", "first_pass"};
  group->work.resize(group->parts.size());
  group->flops_per_pass = cost.forward.flops + cost.backward.flops;
  group->work.back() = {static_cast<double>(c.batch), group->flops_per_pass, 0};
  group->open = [&workshop, c] { return std::make_unique<SetupMeasurement>(workshop, c); };
  return rows_of(group, [&](std::string_view part) { return setup_key(c, part, workshop.settings()); });
}

}  // namespace lamina::bench
