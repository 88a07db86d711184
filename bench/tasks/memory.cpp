// The memory that networks would take, from the planner's arithmetic alone.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "describe.h"
#include "io/quantities.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

constexpr int largest_batch_tried = 1 << 16;

struct Largest {
  int batch = 0;  ///< 0: not even one image fits
  std::size_t bytes = 0;
  bool at_least = false;  ///< larger ones were not tried
};

class Predictor {
 public:
  Predictor(Session& session, Config config, Mode mode) : session_(&session), config_(std::move(config)), mode_(mode) {}

  MemoryReport at(int batch) {
    config_.batch = batch;
    return predict_memory(session_->plans.graph(config_), session_->backends.at(config_.backend),
                          session_->plans.options(config_, mode_));
  }

  Largest largest_under(std::size_t limit) {
    Largest best;
    int too_large = largest_batch_tried + 1;
    const auto fits = [&](int batch) {
      std::size_t bytes = std::numeric_limits<std::size_t>::max();
      try {
        bytes = at(batch).total();
      } catch (const ShapeError&) {  // beyond what a shape can hold
      }
      if (bytes <= limit && batch > best.batch) best = {batch, bytes, batch == largest_batch_tried};
      if (bytes > limit) too_large = std::min(too_large, batch);
      return bytes;
    };
    if (fits(1) > limit) return {};
    // Memory is nearly a straight line in the batch: aim by two points, and halve where the aim is off.
    double slope = static_cast<double>(fits(2)) - static_cast<double>(at(1).total());
    for (bool aim = true; best.batch + 1 < too_large; aim = !aim) {
      const double room = static_cast<double>(limit - best.bytes);
      double next = (best.batch + static_cast<double>(too_large)) / 2;
      if (aim && slope > 0) next = best.batch + room / slope;
      const int batch = std::clamp(static_cast<int>(std::min(next, 1e9)), best.batch + 1, too_large - 1);
      const int before = best.batch;
      const std::size_t bytes_before = best.bytes;
      if (fits(batch) <= limit && batch > before)
        slope = (static_cast<double>(best.bytes) - static_cast<double>(bytes_before)) / (batch - before);
    }
    return best;
  }

 private:
  Session* session_;
  Config config_;
  Mode mode_;
};

std::string mib(std::size_t bytes) { return fmt::format("{:.2f}", static_cast<double>(bytes) / mebibyte); }

std::string text_of(const Largest& largest, std::size_t limit) {
  if (largest.batch == 0) return fmt::format("not even one image fits in {}", bytes_text(static_cast<double>(limit)));
  return fmt::format("{}batch {} fits in {} ({} of it used)", largest.at_least ? "at least " : "", largest.batch,
                     bytes_text(static_cast<double>(limit)), bytes_text(static_cast<double>(largest.bytes)));
}

}  // namespace

std::string describe_memory(Session& session, const MemoryOptions& options) {
  using Report = MemoryReport;
  static constexpr std::pair<const char*, std::size_t Report::*> kinds[] = {{"parameters", &Report::parameters},
                                                                            {"state", &Report::state},
                                                                            {"inputs", &Report::inputs},
                                                                            {"arena", &Report::arena},
                                                                            {"arena: values", &Report::values},
                                                                            {"arena: gradients", &Report::gradients},
                                                                            {"arena: saved", &Report::saved},
                                                                            {"arena: scratch", &Report::scratch},
                                                                            {"arena: workspace", &Report::workspace},
                                                                            {"prepared", &Report::prepared}};
  const bool text = options.format == Format::text;
  const std::size_t limit = options.backends.memory_limit;
  const bool limited = limit != std::numeric_limits<std::size_t>::max();
  TextTables tables(options.format, {{"network"}, {"backend"}, {"batch", true}},
                    {{"MiB"}, {"training", true}, {"inference", true}});
  std::string all;
  for (const Config& c : configs(session.backends, options.configs, options.networks)) {
    Predictor training(session, c, Mode::training), inference(session, c, Mode::inference);
    const Report a = training.at(c.batch), b = inference.at(c.batch);
    const auto add = [&](const char* kind, std::string of_training, std::string of_inference) {
      tables.add({c.network, c.backend, fmt::format("{}", c.batch)},
                 {kind, std::move(of_training), std::move(of_inference)});
    };
    for (const auto& [kind, part] : kinds) add(kind, mib(a.*part), mib(b.*part));
    add("total", mib(a.total()), mib(b.total()));
    if (!text && limited)
      add("largest batch", fmt::format("{}", training.largest_under(limit).batch),
          fmt::format("{}", inference.largest_under(limit).batch));
    if (!text) continue;
    all +=
        fmt::format("{}{}, {}{}\n\n{}\n", all.empty() ? "" : "\n", to_string(c), to_string(c.dtype),
                    options.plan.keep == Keep::cheap ? ", keeping what is expensive to make again" : "", tables.take());
    all += "Blocks in the arena share its memory where their lives do not overlap: they sum to more than it.\n";
    if (!a.workspace_exact || !b.workspace_exact) all += "The workspace is an upper bound.\n";
    if (limited)
      all += fmt::format("Training: {}.\nInference: {}.\n", text_of(training.largest_under(limit), limit),
                         text_of(inference.largest_under(limit), limit));
  }
  return text ? all : tables.take();
}

}  // namespace lamina::bench
