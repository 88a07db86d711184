// Rows net/...: a whole network's forward, backward and total in training, and its inference.

#include <fmt/format.h>

#include "measure/net_run.h"
#include "rows.h"
#include "support/warm_up.h"

namespace lamina::bench {
namespace {

class NetMeasurement final : public Measurement {
 public:
  NetMeasurement(Workshop& workshop, const Case& c, Mode mode)
      : run_(workshop.graph(c), workshop.usable_backend(c.backend), workshop.plan_options(c, mode),
             workshop.settings().cuda_graph, workshop.settings().weights) {
    warm_up(run_.plan().backend().device(), [this] { run_.untimed(); });
  }

  std::vector<Sample> pass() override {
    std::vector<Sample> samples = run_.pass();
    if (samples.size() == 1) return samples;
    samples.push_back(samples[1]);
    samples[2].seconds += samples[0].seconds;
    samples[2].cpu_seconds += samples[0].cpu_seconds;
    return samples;
  }

  MemoryReport memory() const override { return run_.plan().memory(); }

  std::vector<double> bytes() const override {
    const GraphCost moved = plan_cost(run_.plan());
    if (run_.plan().options().mode == Mode::inference) return {moved.forward.bytes};
    return {moved.forward.bytes, moved.backward.bytes, moved.forward.bytes + moved.backward.bytes};
  }

 private:
  NetRun run_;
};

std::vector<Row> rows_of_mode(Workshop& workshop, const Case& c, Mode mode, const Graph& graph) {
  const bool training = mode == Mode::training;
  const GraphCost cost = graph_cost(graph, c.dtype, protocol_of(c, workshop.settings()).input_gradient);
  const double images = c.batch;
  const Work forward = {images, cost.forward.flops}, backward = {images, cost.backward.flops};
  const Work total = {images, forward.flops + backward.flops};

  auto group = std::make_shared<Group>();
  group->title = fmt::format("{} on {}{}", c.network, c.backend, training ? "" : ", inference");
  group->facts = c;
  if (training) {
    group->parts = {"forward", "backward", "total"};
    group->work = {forward, backward, total};
  } else {
    group->parts = {"inference"};
    group->work = {forward};
  }
  group->flops_per_pass = group->work.back().flops;
  group->open = [&workshop, c, mode] {
    if (workshop.settings().cuda_graph)
      workshop.usable_backend(c.backend).device().capture([] {});  // or refuses, before any work
    return std::make_unique<NetMeasurement>(workshop, c, mode);
  };
  return bench::rows_of(group, [&](std::string_view part) { return net_key(c, part, workshop.settings()); });
}

}  // namespace

std::vector<Row> net_rows(Workshop& workshop, const Case& c) {
  const Graph graph = workshop.graph(c);
  std::vector<Row> rows = rows_of_mode(workshop, c, Mode::training, graph);
  for (Row& row : rows_of_mode(workshop, c, Mode::inference, graph)) rows.push_back(std::move(row));
  return rows;
}

}  // namespace lamina::bench
