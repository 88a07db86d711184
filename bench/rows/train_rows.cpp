// Rows train/...: one epoch of a workload, validation included. The epochs of a row are those of one training: the
// first warms up. Without real files the samples are synthetic, and the name says which share of them.

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "bench/measure/costs.h"
#include "bench/timing/stopwatch.h"
#include "epochs.h"
#include "lamina/workloads.h"
#include "rows.h"

namespace lamina::bench {
namespace {

WorkloadOptions workload_options(const RunOptions& options) {
  return {.data = options.train_data,
          .share = options.train_data.empty() ? options.train_share : 1,
          .width_divisor = options.net.width_divisor};
}

class EpochGroupRun final : public GroupRun {
 public:
  EpochGroupRun(const Workload& known, Backend& backend, const RunOptions& options, const Config& c)
      : ready_(prepare(known, workload_options(options))), samples_(samples_of(ready_)) {
    Options& plan = ready_.options.plan;
    plan.dtype = c.dtype;
    plan.layout = c.layout;
    plan.keep = options.plan.keep;
    plan.fuse = options.plan.fuse;
    plan.choice = options.plan.choice;
    trainer_ = std::make_unique<Trainer>(ready_.graph, backend, *ready_.training, ready_.options);
    EpochGroupRun::pass();  // to warm up
  }

  std::vector<Sample> pass() override {
    const double cpu = cpu_seconds();
    const EpochResult epoch = trainer_->train(static_cast<int>(trainer_->epochs().size()) + 1).back();
    Sample sample{.seconds = epoch.seconds, .cpu_seconds = cpu_seconds() - cpu};
    sample.counters = epoch_fields(epoch, samples_);
    return {sample};
  }

  MemoryReport memory() const override { return trainer_->plan().memory(); }
  std::string note() const override { return ready_.data; }

  std::optional<Work> work() const override {
    const Plan& plan = trainer_->plan();
    const GraphCost cost = plan_cost(plan);
    const double batch = plan.graph().node("labels").shape.n, samples = static_cast<double>(samples_);
    const double unseen = ready_.validation ? static_cast<double>(ready_.validation->count()) : 0;
    return Work{samples, (samples * (cost.forward.flops + cost.backward.flops) + unseen * cost.forward.flops) / batch};
  }

 private:
  PreparedWorkload ready_;
  std::int64_t samples_;
  std::unique_ptr<Trainer> trainer_;  // whose plan is not const
};

}  // namespace

std::vector<Row> train_rows(Session& session, const RunOptions& options, const Config& c) {
  const Workload& known = workload(c.network);
  const double share = workload_options(options).share;
  Group group;
  group.title = fmt::format("an epoch of {} on {}", c.network, c.backend);
  group.config = c;
  group.parts = {"epoch"};
  // Backward is twice forward. What is exact follows from the plan.
  const auto samples = share * static_cast<double>(known.samples);
  group.flops_per_pass = 6 * samples * static_cast<double>(known.forward_macs);
  group.work = {{samples, group.flops_per_pass}};
  group.open = [&session, &options, &known, c] {
    return std::make_unique<EpochGroupRun>(known, session.backends.usable(c.backend), options, c);
  };
  return rows_of(std::move(group), [&](std::string_view) { return train_key(c, options); });
}

}  // namespace lamina::bench
