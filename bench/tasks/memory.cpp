// The memory that networks would take, from the planner's arithmetic alone.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "bench/context/context.h"
#include "bench/io/text.h"
#include "bench/measure/layers.h"
#include "bench/measure/memory_prediction.h"
#include "bench/measure/row_key.h"
#include "describe.h"
#include "lamina/live_memory.h"
#include "lamina/optimiser.h"

namespace lamina::bench {
namespace {

using Json = nlohmann::ordered_json;

/// Kinds of memory. In a file a part of the arena has its own name alone.
constexpr std::pair<std::string_view, std::size_t MemoryReport::*> kinds[] = {
    {"parameters", &MemoryReport::parameters},
    {"state", &MemoryReport::state},
    {"optimiser", &MemoryReport::optimiser},
    {"inputs", &MemoryReport::inputs},
    {"arena", &MemoryReport::arena},
    {"arena: values", &MemoryReport::values},
    {"arena: gradients", &MemoryReport::gradients},
    {"arena: saved", &MemoryReport::saved},
    {"arena: scratch", &MemoryReport::scratch},
    {"arena: workspace", &MemoryReport::workspace},
    {"prepared", &MemoryReport::prepared}};

std::string mib(std::size_t bytes) { return fmt::format("{:.2f}", static_cast<double>(bytes) / mebibyte); }

std::string text_of(const LargestBatch& largest, std::size_t limit) {
  if (largest.batch == 0) return fmt::format("not even one image fits in {}", bytes_text(static_cast<double>(limit)));
  return fmt::format("{}batch {} fits in {} ({} of it used)", largest.at_least ? "at least " : "", largest.batch,
                     bytes_text(static_cast<double>(limit)), bytes_text(static_cast<double>(largest.bytes)));
}

Json memory_json(Session& session, const Config& c, const MemoryOptions& options, Mode mode, MemoryPredictor& predictor,
                 std::size_t limit, bool limited) {
  const MemoryReport report = predictor.at(c.batch);
  const char* const part = mode_name(mode);
  RowKey key = key_of("memory", c, part, options);
  if (mode == Mode::training && !options.optimiser.empty()) key.differs.emplace_back("optimiser", options.optimiser);
  Json json = {{"key", fields_of(key)}, {"mode", part}};
  for (const auto& [kind, bytes] : kinds) json[std::string(kind.substr(kind.rfind(' ') + 1))] = report.*bytes;
  json["total"] = report.total();
  json["workspace_exact"] = report.workspace_exact;
  if (limited) {
    const LargestBatch largest = predictor.largest_under(limit);
    json["limit_bytes"] = limit;
    json["largest_batch"] = largest.batch;
    json["largest_batch_bytes"] = largest.bytes;
    json["largest_batch_at_least"] = largest.at_least;
  }
  const Graph graph = session.plans.graph(c);
  json["steps"] = Json::array();
  for (const LiveMemory& step : predict_live_memory(graph, session.backends.at(c.backend), predictor.options(c.batch)))
    json["steps"].push_back({{"step", json["steps"].size()},
                             {"layers", layers_text(graph, step.nodes)},
                             {"pass", step.backward ? "backward" : "forward"},
                             {"live_bytes", step.total()},
                             {"by_kind",
                              {{"values", step.values},
                               {"gradients", step.gradients},
                               {"saved", step.saved},
                               {"scratch", step.scratch},
                               {"workspace", step.workspace}}}});
  return json;
}

}  // namespace

std::string describe_memory(Session& session, const MemoryOptions& options) {
  const bool text = options.format == Format::text;
  std::optional<Optimiser> optimiser;
  if (!options.optimiser.empty()) optimiser = named_optimiser(options.optimiser).optimiser;
  const std::size_t limit = options.backends.memory_limit;
  const bool limited = limit != std::numeric_limits<std::size_t>::max();
  Results results(session.backends, options.out, "memories");
  std::vector<Mode> modes = {Mode::training, Mode::inference};
  if (!session.plans.trains()) modes.erase(modes.begin());
  std::vector<TextTable::Column> columns = {{"MiB"}};
  for (const Mode mode : modes) columns.push_back({mode_name(mode), true});
  TextTables tables(options.format, {{"network"}, {"backend"}, {"batch", true}}, columns);
  std::string all;
  for (const Config& c : configs(session.backends, options.configs, options.net, options.networks)) {
    std::vector<MemoryPredictor> predictors;
    std::vector<MemoryReport> reports;
    for (const Mode mode : modes) {
      predictors.emplace_back(session.plans, session.backends, c, mode, optimiser);
      reports.push_back(predictors.back().at(c.batch));
    }
    const auto add = [&](std::string_view kind, const auto& text_of_mode) {
      std::vector<std::string> row = {std::string(kind)};
      for (std::size_t i = 0; i < modes.size(); ++i) row.push_back(text_of_mode(i));
      tables.add({c.network, c.backend, fmt::format("{}", c.batch)}, std::move(row));
    };
    if (results.wanted()) {
      std::vector<std::string> more;
      if (!options.optimiser.empty()) more.push_back("--optimiser=" + options.optimiser);
      const std::string again = rerun("memory", c, options, more);
      for (std::size_t i = 0; i < modes.size(); ++i)
        results.add(memory_json(session, c, options, modes[i], predictors[i], limit, limited), again);
    }
    for (const auto& kind : kinds) add(kind.first, [&](std::size_t i) { return mib(reports[i].*kind.second); });
    add("total", [&](std::size_t i) { return mib(reports[i].total()); });
    if (!text && limited)
      add("largest batch", [&](std::size_t i) { return fmt::format("{}", predictors[i].largest_under(limit).batch); });
    if (!text) continue;
    all += fmt::format("{}{}, {}{}{}\n\n{}\n", all.empty() ? "" : "\n", to_string(c), to_string(c.dtype),
                       options.plan.keep == Keep::cheap ? ", keeping what is expensive to make again" : "",
                       optimiser ? ", training by " + to_string(*optimiser) : "", tables.take());
    all += "Blocks in the arena share its memory where their lives do not overlap: they sum to more than it.\n";
    if (!std::ranges::all_of(reports, &MemoryReport::workspace_exact)) all += "The workspace is an upper bound.\n";
    for (std::size_t i = 0; limited && i < modes.size(); ++i)
      all += fmt::format("{}: {}.\n", modes[i] == Mode::training ? "Training" : "Inference",
                         text_of(predictors[i].largest_under(limit), limit));
  }
  results.finish(session.peaks);
  return text ? all : tables.take();
}

}  // namespace lamina::bench
