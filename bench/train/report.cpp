// The reports of trainings, and their file.

#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/rows/entries.h"

namespace lamina::bench {
namespace {

/// The key of a training. Its row's name: "train/mnist_mlp/epoch/eigen/f32/nchw/batch:128/synthetic:0.1".
RowKey training_key(const std::string& name, const PreparedWorkload& ready, const TrainOptions& options) {
  const int batch = options.net.ranks * ready.graph.node("labels").shape.n;
  RowKey key = key_of("train", {name, options.backend, options.dtype, Layout::nchw, batch}, "epoch", options);
  for (const auto& [flag, value] : training_differs(options)) key["differs"][flag] = value;
  return key;
}

double sum_of(const std::vector<EpochResult>& epochs, double EpochResult::*seconds = &EpochResult::seconds) {
  double sum = 0;
  for (const EpochResult& epoch : epochs) sum += epoch.*seconds;
  return sum;
}

}  // namespace

std::string cost_text(double seconds, double usd_per_hour) {
  if (!(usd_per_hour > 0)) return {};
  const double value = seconds / 3600 * usd_per_hour;
  const int digits = value > 0 ? std::max(4, 1 - static_cast<int>(std::floor(std::log10(value)))) : 4;
  return fmt::format(", {:.{}f} USD at {} USD/h", value, digits, usd_per_hour);
}

double seconds_to(const std::vector<EpochResult>& epochs, double target_accuracy) {
  double seconds = 0;
  for (const EpochResult& e : epochs) {
    seconds += e.seconds;
    const double accuracy = std::isnan(e.validation.accuracy) ? e.training.accuracy : e.validation.accuracy;
    if (accuracy >= target_accuracy) return seconds;
  }
  return -1;
}

std::string epoch_line(const EpochResult& e, int epochs, const std::string& data_note) {
  std::string line = fmt::format("epoch {}/{}  {:.2f} s  loss {:.4f}  accuracy {:.4f}", e.epoch + 1, epochs, e.seconds,
                                 e.training.loss, e.training.accuracy);
  if (!std::isnan(e.validation.loss))
    line += fmt::format("  validation loss {:.4f}  accuracy {:.4f}", e.validation.loss, e.validation.accuracy);
  return line + data_note + "\n";
}

std::string summary(const TrainOptions& options, const std::vector<EpochResult>& epochs, const std::string& data_note) {
  const double seconds = sum_of(epochs);
  std::string text =
      fmt::format("{} epoch{}: {:.2f} s{}; the first {:.2f} s", epochs.size(), epochs.size() == 1 ? "" : "s", seconds,
                  cost_text(seconds, options.usd_per_hour), epochs.front().seconds);
  if (epochs.size() > 1)
    text += fmt::format(", each later one {:.2f} s in the mean",
                        (seconds - epochs.front().seconds) / static_cast<double>(epochs.size() - 1));
  text += data_note + "\n";
  if (options.target > 0) {
    const double reached = seconds_to(epochs, options.target);
    text += reached < 0 ? fmt::format("accuracy {} was not reached{}\n", options.target, data_note)
                        : fmt::format("to accuracy {}: {:.2f} s{}{}\n", options.target, reached,
                                      cost_text(reached, options.usd_per_hour), data_note);
  }
  return text;
}

std::string stopped_line(const TrainOptions& options, std::size_t done, int epochs, const std::string& data_note) {
  std::string how = "; without --checkpoint the next run begins anew";
  if (!options.checkpoint.empty())
    how = done == 0 && !std::filesystem::exists(options.checkpoint)
              ? "; the first checkpoint is written after the first epoch, or by --checkpoint_updates"
              : "; the same command goes on from " + options.checkpoint.string();
  return fmt::format("stopped after {} of {} epochs{}{}\n", done, epochs, how, data_note);
}

TextTable trained_table(const std::vector<Trained>& all) {
  TextTable table;
  table.columns = {"training", ">seed",     ">epochs",     ">first s", ">later s", ">samples/s",
                   ">loss",    ">accuracy", ">validation", ">best",    "data"};
  const auto number = [](double value, const char* format) {
    return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : std::string();
  };
  for (const Trained& one : all) {
    if (one.epochs.empty()) continue;
    const double seconds = sum_of(one.epochs);
    const double training_seconds = seconds - sum_of(one.epochs, &EpochResult::validation_seconds);
    const EpochResult& first = one.epochs.front();
    const EpochResult& last = one.epochs.back();
    const auto count = static_cast<double>(one.epochs.size());
    table.rows.push_back({one.name, fmt::format("{}", one.seed), fmt::format("{}", one.epochs.size()),
                          number(first.seconds, "{:.2f}"),
                          one.epochs.size() > 1 ? number((seconds - first.seconds) / (count - 1), "{:.2f}") : "",
                          number(static_cast<double>(one.samples) * count / training_seconds, "{:.0f}"),
                          number(last.training.loss, "{:.4f}"), number(last.training.accuracy, "{:.4f}"),
                          number(last.validation.accuracy, "{:.4f}"),
                          one.optimum ? number(one.optimum->accuracy, "{:.4f}") : "", one.data});
  }
  return table;
}

std::string progress_line(const lamina::Progress& at, std::uint64_t epochs, double seconds, std::int64_t batches,
                          std::int64_t samples) {
  constexpr std::int64_t width = 20;
  const std::int64_t full = width * at.batch / at.batches, left = at.batches - at.batch;
  const double of_batch = seconds / static_cast<double>(batches);
  const auto later = static_cast<double>(epochs - at.epoch - 1) * static_cast<double>(at.batches);
  const double all_left = of_batch * (static_cast<double>(left) + later);
  return fmt::format("epoch {}/{}  [{}{}] {:3} %  {:.0f} samples/s  {} left; in all about {}, of which {} are left",
                     at.epoch + 1, epochs, std::string(static_cast<std::size_t>(full), '#'),
                     std::string(static_cast<std::size_t>(width - full), ' '), 100 * at.batch / at.batches,
                     static_cast<double>(samples) / seconds, seconds_text(of_batch * static_cast<double>(left)),
                     seconds_text(seconds + all_left), seconds_text(all_left));
}

void TrainingScreen::batch_done(const lamina::Progress& at) {
  const double now = steady_seconds();
  if (++batches_ == 0) begun_ = now;
  samples_ += batches_ > 0 ? at.samples : 0;
  if (batches_ == 0 || now - shown_ < pause_) return;
  shown_ = now;
  print_(progress_line(at, epochs_, now - begun_, batches_, samples_));
}

std::int64_t samples_of(const PreparedWorkload& ready) {
  const std::int64_t count = ready.training->count(), batch = ready.graph.node("labels").shape.n;
  return ready.options.drop_last ? count / batch * batch : count;
}

Record::Record(const TrainOptions& options, Backends& backends) : backends_(&backends), results_(options.json) {
  bench::begin(results_, backends, "trainings");
}

void Record::begin(const std::string& name, const std::filesystem::path* onnx, const PreparedWorkload& ready,
                   const TrainOptions& options, int epochs, const std::vector<EpochResult>& before) {
  if (!results_.wanted()) return;
  key_ = training_key(name, ready, options);
  rerun_ = rerun("train", {name, options.backend, options.dtype, Layout::nchw, 0}, options, training_words(options));
  data_ = ready.data;
  samples_ = samples_of(ready);
  epochs_ = epochs;
  Json training = {{"name", row_name(key_)},
                   {"key", key_},
                   {"data", ready.data},
                   {"synthetic", ready.synthetic},
                   {"parameters", ready.graph.parameter_count()},
                   {"optimiser", to_string(ready.options.optimiser)},
                   {"learning_rate", ready.options.learning_rate(0)},
                   {"samples", samples_},
                   {"validation_samples", ready.validation ? ready.validation->count() : 0},
                   {"seed", options.seed},
                   {"epochs", epochs},
                   {"resumed_after", before.size()}};
  if (onnx != nullptr) training["onnx"] = onnx->string();
  if (ready.optimum) training["best_possible"] = {{"loss", ready.optimum->loss}, {"accuracy", ready.optimum->accuracy}};
  results_.add("trainings", std::move(training), rerun_);
  for (const EpochResult& epoch : before) epoch_done(epoch, 0);
}

void Record::epoch_done(const EpochResult& epoch, double cpu_seconds) {
  if (!results_.wanted()) return;
  Json row = begin_entry(row_name(key_), {0, epochs_, static_cast<std::int64_t>(epoch.epoch)});
  row["real_time"] = epoch.seconds;
  row["cpu_time"] = cpu_seconds;
  row["time_unit"] = "s";
  const double training_seconds = epoch.seconds - epoch.validation_seconds;
  const auto add = [&](const char* field, double value) {
    if (std::isfinite(value)) row[field] = value;
  };
  row["epoch"] = epoch.epoch;
  row["samples"] = samples_;
  add("loss", epoch.training.loss);
  add("accuracy", epoch.training.accuracy);
  add("validation_loss", epoch.validation.loss);
  add("validation_accuracy", epoch.validation.accuracy);
  if (!std::isnan(epoch.validation.loss)) add("validation_seconds", epoch.validation_seconds);
  if (training_seconds > 0) add("samples_per_second", static_cast<double>(samples_) / training_seconds);
  row["label"] = data_;
  row["key"] = key_;
  results_.add("benchmarks", std::move(row), rerun_);
}

}  // namespace lamina::bench
