// The memory that networks would take, from the planner's arithmetic alone.

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "bench/context/results.h"
#include "bench/io/quantities.h"
#include "bench/measure/layers.h"
#include "bench/measure/memory_prediction.h"
#include "bench/measure/rerun.h"
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
  const bool training = mode == Mode::training;
  const char* const part = training ? "training" : "inference";
  RowKey key = plan_key("memory", c, part, options);
  if (training && !options.optimiser.empty()) key.differs.emplace_back("optimiser", options.optimiser);
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
  TextTables tables(options.format, {{"network"}, {"backend"}, {"batch", true}},
                    {{"MiB"}, {"training", true}, {"inference", true}});
  std::string all;
  for (const Config& c : configs(session.backends, options.configs, options.net, options.networks)) {
    MemoryPredictor training(session.plans, session.backends, c, Mode::training, optimiser);
    MemoryPredictor inference(session.plans, session.backends, c, Mode::inference);
    const MemoryReport a = training.at(c.batch), b = inference.at(c.batch);
    const auto add = [&](std::string_view kind, std::string of_training, std::string of_inference) {
      tables.add({c.network, c.backend, fmt::format("{}", c.batch)},
                 {std::string(kind), std::move(of_training), std::move(of_inference)});
    };
    if (results.wanted()) {
      std::vector<std::string> more;
      if (!options.optimiser.empty()) more.push_back("--optimiser=" + options.optimiser);
      const std::string again = rerun("memory", c, options, more);
      results.add(memory_json(session, c, options, Mode::training, training, limit, limited), again);
      results.add(memory_json(session, c, options, Mode::inference, inference, limit, limited), again);
    }
    for (const auto& [kind, part] : kinds) add(kind, mib(a.*part), mib(b.*part));
    add("total", mib(a.total()), mib(b.total()));
    if (!text && limited)
      add("largest batch", fmt::format("{}", training.largest_under(limit).batch),
          fmt::format("{}", inference.largest_under(limit).batch));
    if (!text) continue;
    all += fmt::format("{}{}, {}{}{}\n\n{}\n", all.empty() ? "" : "\n", to_string(c), to_string(c.dtype),
                       options.plan.keep == Keep::cheap ? ", keeping what is expensive to make again" : "",
                       optimiser ? ", training by " + to_string(*optimiser) : "", tables.take());
    all += "Blocks in the arena share its memory where their lives do not overlap: they sum to more than it.\n";
    if (!a.workspace_exact || !b.workspace_exact) all += "The workspace is an upper bound.\n";
    if (limited)
      all += fmt::format("Training: {}.\nInference: {}.\n", text_of(training.largest_under(limit), limit),
                         text_of(inference.largest_under(limit), limit));
  }
  results.finish(session.peaks);
  return text ? all : tables.take();
}

}  // namespace lamina::bench
