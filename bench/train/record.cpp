// The file of train --json: epochs as rows, and what each training is.

#include "record.h"

#include <cmath>
#include <utility>

#include "bench/context/context.h"
#include "bench/measure/row_key.h"
#include "flags.h"

namespace lamina::bench {
namespace {

using Json = nlohmann::ordered_json;

/// "train/mnist_mlp/epoch/eigen/f32/nchw/batch:128/synthetic:0.1".
RowKey training_key(const std::string& name, const PreparedWorkload& ready, const TrainOptions& options) {
  const int batch = options.net.ranks * ready.graph.node("labels").shape.n;
  RowKey key = key_of("train", {name, options.backend, options.dtype, Layout::nchw, batch}, "epoch", options);
  for (auto& differs : training_differs(options)) key.differs.push_back(std::move(differs));
  return key;
}

}  // namespace

std::int64_t samples_of(const PreparedWorkload& ready) {
  const std::int64_t count = ready.training->count(), batch = ready.graph.node("labels").shape.n;
  return ready.options.drop_last ? count / batch * batch : count;
}

std::map<std::string, double> epoch_fields(const EpochResult& epoch, std::int64_t samples) {
  std::map<std::string, double> fields = {{"epoch", static_cast<double>(epoch.epoch)},
                                          {"samples", static_cast<double>(samples)},
                                          {"loss", epoch.training.loss},
                                          {"accuracy", epoch.training.accuracy},
                                          {"validation_loss", epoch.validation.loss},
                                          {"validation_accuracy", epoch.validation.accuracy}};
  if (!std::isnan(epoch.validation.loss)) fields["validation_seconds"] = epoch.validation_seconds;
  const double training_seconds = epoch.seconds - epoch.validation_seconds;
  if (training_seconds > 0) fields["samples_per_second"] = static_cast<double>(samples) / training_seconds;
  std::erase_if(fields, [](const auto& field) { return !std::isfinite(field.second); });
  return fields;
}

Record::Record(const TrainOptions& options, Backends& backends)
    : backends_(&backends), results_(backends, options.json, "trainings") {}

void Record::begin(const std::string& name, const std::filesystem::path* onnx, const PreparedWorkload& ready,
                   const TrainOptions& options, std::uint64_t seed, int epochs,
                   const std::vector<EpochResult>& before) {
  if (!results_.wanted()) return;
  TrainOptions its = options;
  its.seed = seed;
  key_ = training_key(name, ready, its);
  rerun_ = rerun("train", {name, options.backend, options.dtype, Layout::nchw, 0}, options, training_words(its));
  data_ = ready.data;
  samples_ = samples_of(ready);
  epochs_ = epochs;
  Json training = {{"name", to_string(key_)},
                   {"key", fields_of(key_)},
                   {"data", ready.data},
                   {"synthetic", ready.synthetic},
                   {"parameters", ready.graph.parameter_count()},
                   {"optimiser", to_string(ready.options.optimiser)},
                   {"learning_rate", ready.options.learning_rate(0)},
                   {"samples", samples_},
                   {"validation_samples", ready.validation ? ready.validation->count() : 0},
                   {"seed", seed},
                   {"epochs", epochs},
                   {"resumed_after", before.size()}};
  if (onnx != nullptr) training["onnx"] = onnx->string();
  if (ready.optimum) training["best_possible"] = {{"loss", ready.optimum->loss}, {"accuracy", ready.optimum->accuracy}};
  results_.add(std::move(training), rerun_);
  for (const EpochResult& epoch : before) add(epoch, 0);
}

void Record::add(const EpochResult& epoch, double cpu_seconds) {
  const std::string name = to_string(key_);
  Json row = {{"name", name},
              {"family_index", 0},
              {"per_family_instance_index", 0},
              {"run_name", name},
              {"run_type", "iteration"},
              {"repetitions", epochs_},
              {"repetition_index", epoch.epoch},
              {"threads", 1},
              {"iterations", 1},
              {"real_time", epoch.seconds},
              {"cpu_time", cpu_seconds},
              {"time_unit", "s"}};
  for (const auto& [field, value] : epoch_fields(epoch, samples_)) row[field] = value;
  row["label"] = data_;
  row["key"] = fields_of(key_);
  row["rerun"] = rerun_;
  results_.add_to("benchmarks", std::move(row));
}

void Record::epoch_done(const EpochResult& epoch, double cpu_seconds) {
  if (results_.wanted()) add(epoch, cpu_seconds);
}

void Record::end() { results_.finish(Peaks(*backends_)); }

}  // namespace lamina::bench
