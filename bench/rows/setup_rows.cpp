// Rows setup/...: what comes before the first timed pass. The device with its library, opened once in a process; the
// graph, the plan (laid out, allocated, filled with random numbers), and the first pass over it. What a library loads
// when it is first needed is in the first pass of the first such row of its backend, and in no later one.

#include <fmt/format.h>

#include <optional>

#include "bench/measure/costs.h"
#include "bench/timing/stopwatch.h"
#include "rows.h"

namespace lamina::bench {
namespace {

class SetupGroupRun final : public GroupRun {
 public:
  SetupGroupRun(Session& session, const Config& c)
      : session_(&session),
        config_(c),
        opened_(session.backends.opened(c.backend)),
        stopwatch_(session.backends.at(c.backend).device()) {}

  std::vector<Sample> pass() override {
    plan_.reset();
    std::optional<Graph> graph;
    const Sample built = stopwatch_.time([&] { graph.emplace(session_->plans.graph(config_)); });
    const Sample planned = stopwatch_.time([&] {
      plan_.emplace(*graph, session_->backends.at(config_.backend), session_->plans.options(config_, Mode::training));
    });
    const Sample first = stopwatch_.time([&] {
      plan_->forward();
      plan_->backward();
    });
    return {opened_, built, planned, first};
  }

  MemoryReport memory() const override { return plan_ ? plan_->memory() : MemoryReport{}; }

 private:
  Session* session_;
  Config config_;
  Sample opened_;
  Stopwatch stopwatch_;
  std::optional<Plan> plan_;
};

}  // namespace

std::vector<Row> setup_rows(Session& session, const RunOptions& options, const Config& c) {
  const GraphCost cost = graph_cost(session.plans.graph(c), c.dtype, session.plans.protocol(c.network).input_gradient);
  Group group;
  group.title = fmt::format("setup of {} on {}", c.network, c.backend);
  group.config = c;
  group.first_calls = true;
  group.parts = {"device", "graph", "plan", "first_pass"};
  group.work.resize(group.parts.size());
  group.flops_per_pass = cost.forward.flops + cost.backward.flops;
  group.work.back() = {static_cast<double>(c.batch), group.flops_per_pass, 0};
  group.open = [&session, c] { return std::make_unique<SetupGroupRun>(session, c); };
  return rows_of(std::move(group), [&](std::string_view part) { return plan_key("setup", c, part, options); });
}

}  // namespace lamina::bench
