// A training of one of the six workloads, with its seconds and dollars.

#include "train.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "cost.h"
#include "io/interrupt.h"
#include "io/result_file.h"
#include "lamina/error.h"
#include "lamina/workloads.h"
#include "screen.h"

namespace lamina::bench {
namespace {

/// Ends a training from within; it goes on from its checkpoint.
struct Stopped {};

/// The price that the options ask for; 0: none.
double price(const TrainOptions& options) {
  if (options.usd_per_hour > 0) return options.usd_per_hour;
  if (options.prices.empty() != options.configuration.empty())
    throw UsageError("--prices and --configuration go together: a file of prices and the line of it that holds");
  return options.prices.empty() ? 0 : price_of(options.prices, options.configuration).usd_per_hour;
}

std::string epoch_line(const EpochResult& e, int epochs, const std::string& of) {
  std::string line = fmt::format("epoch {}/{}  {:.2f} s  loss {:.4f}  accuracy {:.4f}", e.epoch + 1, epochs, e.seconds,
                                 e.training.loss, e.training.accuracy);
  if (!std::isnan(e.validation.loss))
    line += fmt::format("  validation loss {:.4f}  accuracy {:.4f}", e.validation.loss, e.validation.accuracy);
  return line + of + "\n";
}

/// Seconds and dollars, to the last epoch and to the target. `of` ends every line.
std::string summary(const TrainOptions& options, const std::vector<EpochResult>& epochs, double usd_per_hour,
                    const std::string& of) {
  double seconds = 0;
  for (const EpochResult& e : epochs) seconds += e.seconds;
  const auto cost = [&](double needed) {
    return usd_per_hour > 0 ? fmt::format(", {:.4f} USD at {} USD/h", usd(needed, usd_per_hour), usd_per_hour)
                            : std::string();
  };
  std::string text = fmt::format("{} epochs: {:.2f} s{}; the first {:.2f} s", epochs.size(), seconds, cost(seconds),
                                 epochs.front().seconds);
  if (epochs.size() > 1)
    text += fmt::format(", each later one {:.2f} s in the mean",
                        (seconds - epochs.front().seconds) / static_cast<double>(epochs.size() - 1));
  text += of + "\n";
  if (options.target > 0) {
    const double reached = seconds_to(epochs, options.target);
    text += reached < 0 ? fmt::format("accuracy {} was not reached{}\n", options.target, of)
                        : fmt::format("to accuracy {}: {:.2f} s{}{}\n", options.target, reached, cost(reached), of);
  }
  return text;
}

}  // namespace

int train_workload(const TrainOptions& options, const MakeBackend& make, const Print& print) {
  const Workload& known = workload(options.workload);
  const int epochs = options.epochs > 0 ? options.epochs : known.epochs;
  const double usd_per_hour = price(options);
  if (!options.out.empty()) check_writable(options.out);
  if (options.accept && options.data.empty())
    throw UsageError("--accept compares with the published runs, which were on real files; give --data");
  Backends backends(options.backends, make);
  Backend& backend = backends.usable(options.backend);

  PreparedWorkload ready = prepare(known, {.data = options.data, .share = options.share, .seed = options.seed});
  const std::string of = fmt::format("  ({})", ready.data);
  TrainingScreen screen(static_cast<std::uint64_t>(epochs));
  TrainerOptions& how = ready.options;
  how.plan.dtype = options.dtype;
  how.checkpoint = options.checkpoint;
  how.threads = options.loader_threads;
  how.after_batch = [&](const lamina::Progress& at) {
    screen.batch_done(at);
    if (interrupted() != 0) throw Stopped();
  };
  how.after_epoch = [&](const EpochResult& e) {
    screen.clear();
    print(epoch_line(e, epochs, of));
    if (interrupted() != 0) throw Stopped();
  };
  Trainer trainer(ready.graph, backend, *ready.training, how);
  print(fmt::format("{}: {} parameters, {}, batch {}, {} samples, on {} ({}){}\n", known.name,
                    ready.graph.parameter_count(), to_string(how.optimiser), ready.graph.node("labels").shape.n,
                    ready.training->count(), options.backend, backend.describe(), of));
  if (trainer.resumed()) print(fmt::format("goes on after {} epochs{}\n", trainer.epochs().size(), of));
  try {
    trainer.train(epochs);
  } catch (const Stopped&) {
    screen.clear();
  }
  const auto& results = trainer.epochs();
  if (!options.out.empty()) replace_file(options.out, run_csv(results));
  if (results.empty()) return interrupted() != 0 ? 128 + interrupted() : 1;
  print(summary(options, results, usd_per_hour, of));
  if (ready.optimum)
    print(fmt::format("the best possible classifier of this set: loss {:.4f}, accuracy {:.4f}{}\n", ready.optimum->loss,
                      ready.optimum->accuracy, of));
  print("\n" + published_table(known.name).text());
  if (interrupted() != 0) return 128 + interrupted();
  if (!options.accept) return 0;
  const Judgement verdict = judge(known, results);
  for (const std::string& line : verdict.lines) print(line + "\n");
  print(verdict.accepted ? "accepted\n" : "NOT accepted\n");
  return verdict.accepted ? 0 : 1;
}

}  // namespace lamina::bench
