// The file of train --json.

#include "record.h"

#include <fmt/format.h>

#include "bench/context/results.h"
#include "bench/measure/rerun.h"
#include "bench/rows/names.h"

namespace lamina::bench {
namespace {

using Json = nlohmann::ordered_json;

PlanningSettings settings_of(const TrainOptions& options) {
  PlanningSettings settings;
  settings.backends = options.backends;
  settings.net.ranks = options.ranks;
  settings.net.onnx = options.onnx;
  settings.net.onnx_settings = options.onnx_settings;
  return settings;
}

/// "train/mnist_mlp/epoch/eigen/f32/nchw/batch:128/synthetic:0.1": with the share of a synthetic set, and with what the
/// user set for a network that is no workload.
RowKey training_key(const std::string& name, const PreparedWorkload& ready, const TrainOptions& options,
                    std::uint64_t seed) {
  RowKey key = bench::key_of(
      "train", {name, options.backend, options.dtype, Layout::nchw, options.ranks * ready.graph.node("labels").shape.n},
      "epoch", settings_of(options));
  if (options.data.empty()) key.differs.emplace_back("synthetic", fmt::format("{:g}", options.share));
  if (options.table_updates == TableUpdates::lazy) key.differs.emplace_back("table_updates", "lazy");
  if (!options.optimiser.empty()) key.differs.emplace_back("optimiser", options.optimiser);
  if (options.learning_rate > 0) key.differs.emplace_back("learning_rate", fmt::format("{}", options.learning_rate));
  if (options.synchronised_batch_norm) key.differs.emplace_back("synchronised_batch_norm", "");
  if (seed != 0) key.differs.emplace_back("seed", fmt::format("{}", seed));
  return key;
}

/// The command that trains the same again.
std::string rerun_of(const std::string& name, const TrainOptions& options, std::uint64_t seed) {
  std::vector<std::string> more;
  const TrainOptions usual;
  const auto add = [&](const char* flag, const auto& value, const auto& usual_value) {
    if (value != usual_value) more.push_back(fmt::format("--{}={}", flag, value));
  };
  add("epochs", options.epochs, usual.epochs);
  add("data", options.data.string(), "");
  add("share", options.share, usual.share);
  add("seed", seed, usual.seed);
  if (options.table_updates != usual.table_updates) more.emplace_back("--table_updates=lazy");
  if (options.synchronised_batch_norm) more.emplace_back("--synchronised_batch_norm");
  add("batch", options.batch, usual.batch);
  add("optimiser", options.optimiser, "");
  add("learning_rate", options.learning_rate, usual.learning_rate);
  add("loader_threads", options.loader_threads, usual.loader_threads);
  return rerun("train", {name, options.backend, options.dtype, Layout::nchw, 0}, settings_of(options), more);
}

}  // namespace

Record::Record(const TrainOptions& options, Backends& backends) : backends_(&backends), file_(options.json) {
  if (!wanted()) return;
  Json& context = file_.document["context"];
  context = start_context(backends);
  file_.document["trainings"] = Json::array();
}

void Record::begin(const std::string& name, const std::filesystem::path* onnx, const PreparedWorkload& ready,
                   const TrainOptions& options, std::uint64_t seed, int epochs,
                   const std::vector<EpochResult>& before) {
  if (!wanted()) return;
  key_ = training_key(name, ready, options, seed);
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
                   {"resumed_after", before.size()},
                   {"rerun", rerun_ = rerun_of(name, options, seed)}};
  if (onnx != nullptr) training["onnx"] = onnx->string();
  if (ready.optimum) training["best_possible"] = {{"loss", ready.optimum->loss}, {"accuracy", ready.optimum->accuracy}};
  file_.document["trainings"].push_back(std::move(training));
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
  file_.document["benchmarks"].push_back(std::move(row));
}

void Record::epoch_done(const EpochResult& epoch, double cpu_seconds) {
  if (!wanted()) return;
  add(epoch, cpu_seconds);
  file_.save_now_and_then();
}

void Record::trained() {
  if (wanted()) file_.try_to_save();
}

void Record::end() {
  if (!wanted()) return;
  end_context(file_.document["context"], Peaks(*backends_));
  file_.save();
}

}  // namespace lamina::bench
