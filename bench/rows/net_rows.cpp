// Rows net/...: a whole network's forward, backward and total in training, and its inference.

#include <fmt/format.h>

#include "measure/call_cost.h"
#include "measure/stopwatch.h"
#include "rows.h"
#include "support/warm_up.h"

namespace lamina::bench {
namespace {

class NetMeasurement final : public Measurement {
 public:
  NetMeasurement(Workshop& workshop, const Case& c, Mode mode)
      : plan_(workshop.graph(c), workshop.usable_backend(c.backend), workshop.plan_options(c, mode)),
        stopwatch_(plan_.backend().device()) {
    const std::filesystem::path& weights = workshop.options().weights;
    if (!weights.empty()) load_weights(plan_, read_safetensors(weights), weights.string());
    pass();  // to warm up: memory touched, threads started, libraries loaded
    if (workshop.options().cuda_graph) record();
    warm_up(plan_.backend().device(), [this] {
      forward();
      if (plan_.options().mode == Mode::training) backward();
    });
  }

  std::vector<Sample> pass() override {
    Device& device = plan_.backend().device();
    const bool training = plan_.options().mode == Mode::training;
    ++drawn_;
    draw(device, plan_.input(), hash(fmt::format("x {}", drawn_)));
    // Before forward, so that a GPU is not idle, and its clock does not fall, between the two passes.
    if (training) draw(device, plan_.output_gradient(), hash(fmt::format("dy {}", drawn_)));
    const Sample first = timed([this] { forward(); });
    if (!training) return {first};
    const Sample second = timed([this] { backward(); });
    Sample total = second;
    total.seconds += first.seconds;
    total.cpu_seconds += first.cpu_seconds;
    return {first, second, total};
  }

  MemoryReport memory() const override { return plan_.memory(); }

  std::vector<double> bytes() const override {
    const GraphCost moved = plan_cost(plan_);
    if (plan_.options().mode == Mode::inference) return {moved.forward.bytes};
    return {moved.forward.bytes, moved.backward.bytes, moved.forward.bytes + moved.backward.bytes};
  }

 private:
  void forward() { forward_ ? forward_->launch() : plan_.forward(); }
  void backward() { backward_ ? backward_->launch() : plan_.backward(); }

  Sample timed(const std::function<void()>& work) {
    Sample sample = stopwatch_.time(work);
    if (forward_) sample.launches = Launches::replayed;
    return sample;
  }

  /// Throws Unsupported where the device cannot. The first launch is to warm up as well.
  void record() {
    Device& device = plan_.backend().device();
    forward_ = device.capture([&] { plan_.forward(); });
    if (plan_.options().mode == Mode::training) backward_ = device.capture([&] { plan_.backward(); });
    pass();
  }

  Plan plan_;
  Stopwatch stopwatch_;
  std::unique_ptr<Captured> forward_, backward_;  ///< null: the plan's own calls
  int drawn_ = 0;
};

std::vector<Row> rows_of_mode(Workshop& workshop, const Case& c, Mode mode, const Graph& graph) {
  const bool training = mode == Mode::training;
  const GraphCost cost = graph_cost(graph, c.dtype, protocol_of(c, workshop.options()).input_gradient);
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
    if (workshop.options().cuda_graph)
      workshop.usable_backend(c.backend).device().capture([] {});  // or refuses, before any work
    return std::make_unique<NetMeasurement>(workshop, c, mode);
  };
  return bench::rows_of(group, [&](std::string_view part) { return net_name(c, part, workshop.options()); });
}

}  // namespace

std::vector<Row> net_rows(Workshop& workshop, const Case& c) {
  const Graph graph = workshop.graph(c);
  std::vector<Row> rows = rows_of_mode(workshop, c, Mode::training, graph);
  for (Row& row : rows_of_mode(workshop, c, Mode::inference, graph)) rows.push_back(std::move(row));
  return rows;
}

}  // namespace lamina::bench
