// Rows net/...: a whole network's forward, backward and total in training, and its inference.

#include <fmt/format.h>

#include "bench/machine/backends.h"
#include "bench/measure/layers.h"
#include "bench/measure/net_run.h"
#include "lamina/timing.h"
#include "rows.h"

namespace lamina::bench {
namespace {

class NetGroupRun final : public GroupRun {
 public:
  NetGroupRun(Session& session, const RunOptions& options, const Config& c, Mode mode)
      : run_(session.plans.graph(c), session.backends.usable(c.backend), session.plans.options(c, mode),
             options.plan.cuda_graph, session.plans.weights(c), session.ranks),
        ranks_(options.net.ranks),
        on_gpu_(runs_on_gpu(c.backend)) {
    Device& device = run_.plan().backend().device();
    warm_up(device, [this] { run_.untimed(); });
  }

  std::vector<Sample> pass() override {
    std::vector<Sample> samples = run_.pass(on_gpu_);
    if (samples.size() > 1) {
      samples.push_back(samples[1]);
      samples[2].seconds += samples[0].seconds;
      samples[2].cpu_seconds += samples[0].cpu_seconds;
    }
    return samples;
  }

  std::vector<Span> spans() const override { return run_.spans(); }
  MemoryReport memory() const override { return run_.plan().memory(); }

  std::vector<double> bytes() const override {
    const GraphCost moved = plan_cost(run_.plan());
    if (run_.plan().options().mode == Mode::inference) return {moved.forward.bytes};
    return {ranks_ * moved.forward.bytes, ranks_ * moved.backward.bytes,
            ranks_ * (moved.forward.bytes + moved.backward.bytes)};
  }

 private:
  NetRun run_;
  int ranks_;
  bool on_gpu_;  ///< whose clock falls while the host draws numbers: an untimed pass comes right before each timed one
};

std::vector<Row> rows_of_mode(Session& session, const RunOptions& options, const Config& c, Mode mode,
                              const Graph& graph) {
  const bool training = mode == Mode::training;
  const GraphCost cost = graph_cost(graph, c.dtype, session.plans.protocol(c.network).input_gradient);
  const double images = c.batch;
  const int ranks = options.net.ranks;  // the graph is of one's part
  const Work forward = {images, ranks * cost.forward.flops}, backward = {images, ranks * cost.backward.flops};

  Group group;
  group.title = fmt::format("{} on {}{}", c.network, c.backend, training ? "" : ", inference");
  group.config = c;
  group.ranks = ranks;
  if (training) {
    group.parts = {"forward", "backward", "total"};
    group.work = {forward, backward, {images, forward.flops + backward.flops}};
  } else {
    group.parts = {"inference"};
    group.work = {forward};
  }
  group.flops_per_pass = group.work.back().flops / ranks;
  group.open = [&session, &options, c, mode] {
    if (options.plan.cuda_graph)
      session.backends.usable(c.backend).device().capture([] {});  // or refuses, before any work
    return std::make_unique<NetGroupRun>(session, options, c, mode);
  };
  return rows_of(std::move(group), [&](std::string_view part) { return key_of("net", c, part, options); });
}

}  // namespace

std::vector<Row> net_rows(Session& session, const RunOptions& options, const Config& c) {
  const Graph graph = session.plans.graph(c);
  std::vector<Row> rows = rows_of_mode(session, options, c, Mode::training, graph);
  if (options.net.ranks > 1) return rows;
  for (Row& row : rows_of_mode(session, options, c, Mode::inference, graph)) rows.push_back(std::move(row));
  return rows;
}

}  // namespace lamina::bench
