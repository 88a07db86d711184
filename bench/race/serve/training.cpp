// An epoch of one of the six workloads in a race.

#include "training.h"

#include "bench/timing/stopwatch.h"
#include "lamina/error.h"
#include "lamina/lamina.h"

namespace lamina::bench {
namespace {

using nlohmann::json;

PreparedWorkload prepared(const ServedTrainingOptions& options) {
  PreparedWorkload ready = prepare(workload(options.workload), {.share = options.share});
  ready.options.drop_last = true;
  ready.options.validation = nullptr;
  return ready;
}

class ServedTraining final : public Served {
 public:
  ServedTraining(const ServedTrainingOptions& options, Backend& backend)
      : ready_(prepared(options)), trainer_(ready_.graph, backend, *ready_.training, ready_.options) {}

  void warm_up() override { pass(); }

  json facts() const override {
    const Plan& plan = trainer_.plan();
    const int batch = plan.graph().node("labels").shape.n;
    return {{"plan_bytes", plan.memory().total()},
            {"data", ready_.data},
            {"batch", batch},
            {"samples", ready_.training->count() / batch * batch}};
  }

  json pass() override {
    const double cpu = cpu_seconds();
    const EpochResult epoch = trainer_.train(static_cast<int>(trainer_.epochs().size()) + 1).back();
    return {{"epoch", epoch.seconds},
            {"epoch_cpu", cpu_seconds() - cpu},
            {"loss", epoch.training.loss},
            {"accuracy", epoch.training.accuracy}};
  }

 private:
  PreparedWorkload ready_;
  mutable Trainer trainer_;  // gives its plan to be changed only
};

/// All samples of an epoch.
TensorFile samples_of(Loader& loader, const Shape& sample, std::uint64_t epoch) {
  HostTensor x, labels;
  loader.start(epoch);
  while (const Batch* batch = loader.next()) {
    x.values.insert(x.values.end(), batch->x.begin(), batch->x.end());
    labels.values.insert(labels.values.end(), batch->labels.begin(), batch->labels.end());
  }
  const auto count = static_cast<std::int64_t>(labels.values.size());
  x.extents = {count, sample.c, sample.h, sample.w};
  labels.extents = {count};
  TensorFile file;
  file["x"] = std::move(x);
  file["labels"] = std::move(labels);
  return file;
}

}  // namespace

void write_batches(const ServedTrainingOptions& options, Backend& backend) {
  const PreparedWorkload ready = prepared(options);
  Trainer trainer(ready.graph, backend, *ready.training, ready.options);
  write_safetensors(options.files / "initial.safetensors", save_weights(trainer.plan()));
  Loader loader(
      *ready.training,
      {.batch = ready.graph.node("labels").shape.n, .drop_last = true, .seed = ready.options.seed, .threads = 0});
  for (int epoch = 0; epoch < options.epochs; ++epoch)
    write_safetensors(options.files / ("epoch-" + std::to_string(epoch) + ".safetensors"),
                      samples_of(loader, ready.training->shape(), static_cast<std::uint64_t>(epoch)));
}

std::unique_ptr<Served> serve_training(const ServedTrainingOptions& options, Backend& backend) {
  return std::make_unique<ServedTraining>(options, backend);
}

}  // namespace lamina::bench
