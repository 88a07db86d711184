// The memory that networks would take, from the planner's arithmetic alone.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "describe.h"
#include "io/grid.h"
#include "io/quantities.h"
#include "measure/cases.h"

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
  Predictor(Workshop& workshop, Case c, Mode mode) : workshop_(&workshop), case_(std::move(c)), mode_(mode) {}

  MemoryReport at(int batch) {
    case_.batch = batch;
    return predict_memory(workshop_->graph(case_), workshop_->backend(case_.backend),
                          workshop_->plan_options(case_, mode_));
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
  Workshop* workshop_;
  Case case_;
  Mode mode_;
};

std::string mib(std::size_t bytes) { return fmt::format("{:.2f}", static_cast<double>(bytes) / mebibyte); }

std::string text_of(const Largest& largest, std::size_t limit) {
  if (largest.batch == 0) return fmt::format("not even one image fits in {}", bytes_text(static_cast<double>(limit)));
  return fmt::format("{}batch {} fits in {} ({} of it used)", largest.at_least ? "at least " : "", largest.batch,
                     bytes_text(static_cast<double>(limit)), bytes_text(static_cast<double>(largest.bytes)));
}

}  // namespace

std::string describe_memory(Workshop& workshop, const MemoryOptions& options) {
  const bool text = options.format == Format::text;
  const bool limited = options.memory_limit != std::numeric_limits<std::size_t>::max();
  Grid grid;
  if (!text) grid.columns = {{"network"}, {"backend"}, {"batch", true}};
  grid.columns.push_back({"MiB"});
  grid.columns.push_back({"training", true});
  grid.columns.push_back({"inference", true});

  std::string all;
  for (const Case& c : cases(workshop, options.networks)) {
    Predictor training(workshop, c, Mode::training), inference(workshop, c, Mode::inference);
    const MemoryReport a = training.at(c.batch), b = inference.at(c.batch);
    const auto row = [&](const char* kind, std::size_t MemoryReport::*part) {
      std::vector<std::string> cells = {kind, mib(a.*part), mib(b.*part)};
      if (!text) cells.insert(cells.begin(), {c.network, c.backend, fmt::format("{}", c.batch)});
      grid.rows.push_back(std::move(cells));
    };
    row("parameters", &MemoryReport::parameters);
    row("state", &MemoryReport::state);
    row("inputs", &MemoryReport::inputs);
    row("arena", &MemoryReport::arena);
    row("arena: values", &MemoryReport::values);
    row("arena: gradients", &MemoryReport::gradients);
    row("arena: saved", &MemoryReport::saved);
    row("arena: scratch", &MemoryReport::scratch);
    row("arena: workspace", &MemoryReport::workspace);
    row("prepared", &MemoryReport::prepared);
    std::vector<std::string> total = {"total", mib(a.total()), mib(b.total())};
    if (!text) total.insert(total.begin(), {c.network, c.backend, fmt::format("{}", c.batch)});
    grid.rows.push_back(std::move(total));
    if (limited && !text) {
      const auto largest = [&](Predictor& p) { return fmt::format("{}", p.largest_under(options.memory_limit).batch); };
      grid.rows.push_back(
          {c.network, c.backend, fmt::format("{}", c.batch), "largest batch", largest(training), largest(inference)});
    }
    if (!text) continue;
    all += fmt::format("{}{} on {}, batch {}, {}{}\n\n{}\n", all.empty() ? "" : "\n", c.network, c.backend, c.batch,
                       to_string(c.dtype), options.keep == Keep::cheap ? ", keeping what is dear" : "", grid.text());
    all += "Blocks in the arena share its memory where their lives do not overlap: they sum to more than it.\n";
    if (!a.workspace_exact || !b.workspace_exact) all += "The workspace is an upper bound.\n";
    if (limited)
      all += fmt::format("Training: {}.\nInference: {}.\n",
                         text_of(training.largest_under(options.memory_limit), options.memory_limit),
                         text_of(inference.largest_under(options.memory_limit), options.memory_limit));
    grid.rows.clear();
  }
  return text ? all : grid.csv();
}

}  // namespace lamina::bench
