// Facts of networks that need no timing: layers with sizes and costs per image; the algorithms that backends choose;
// the memory that training and inference need, by prediction; gradients, compared with finite differences.

#include "describe.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/context/context.h"
#include "bench/measure/layers.h"
#include "bench/measure/row_key.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

constexpr const char* only_one = "the only algorithm";

struct Line {
  std::string layers, passes, algorithm, reason;
};

/// The algorithms that a plan would choose by rule. No plan is made.
std::vector<Line> lowered(Session& session, const Config& c) {
  const Graph graph = session.plans.graph(c);
  Backend& backend = session.backends.at(c.backend);
  std::vector<Line> lines;
  for (const PlannedUnit& unit : planned_units(graph, backend, session.plans.options(c)))
    for (const Lowered::Step& step : backend.lower(unit.spec, unit.choice).steps) {
      std::string reason = step.reason.empty() ? only_one : step.reason;
      lines.push_back({layers_text(graph, unit.nodes), passes_text(step.passes), step.algorithm, std::move(reason)});
    }
  return lines;
}

/// The algorithms that a plan chooses by measuring.
std::vector<Line> measured(Session& session, const Config& c) {
  const Plan plan(session.plans.graph(c), session.backends.usable(c.backend), session.plans.options(c));
  std::vector<Line> lines;
  for (const Call& call : plan.calls()) {
    const bool alone = plan.backend().algorithms(*call.spec, call.passes.front()).size() < 2;
    std::string reason = alone ? only_one : "measured";
    if (!call.tied.empty()) reason += fmt::format(", tied with {}", fmt::join(call.tied, ", "));
    lines.push_back({layers_text(plan.graph(), call.nodes), passes_text(call.passes), call.algorithm, reason});
  }
  return lines;
}

/// Kinds of memory. A file has "values" in place of "arena: values".
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

Json memory_json(const MemoryPredictor& predictor, const MemoryOptions& options) {
  const auto& [session, c, mode, optimiser] = predictor;
  const MemoryReport report = predictor.at(c.batch);
  const char* const part = mode_name(mode);
  RowKey key = key_of("memory", c, part, options);
  if (mode == Mode::training && !options.optimiser.empty()) key["differs"]["optimiser"] = options.optimiser;
  Json json = {{"key", key}, {"mode", part}};
  for (const auto& [kind, bytes] : kinds) json[std::string(kind.substr(kind.rfind(' ') + 1))] = report.*bytes;
  json["total"] = report.total();
  json["workspace_exact"] = report.workspace_exact;
  if (options.backends.has_memory_limit()) {
    const LargestBatch largest = predictor.largest_under(options.backends.memory_limit);
    json["limit_bytes"] = options.backends.memory_limit;
    json["largest_batch"] = largest.batch;
    json["largest_batch_bytes"] = largest.bytes;
    json["largest_batch_at_least"] = largest.at_least;
  }
  const Graph graph = session.plans.graph(c);
  json["steps"] = Json::array();
  for (const LiveMemory& step : predict_live_memory(graph, session.backends.at(c.backend), predictor.options()))
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

std::string image_text(const Shape& s) { return fmt::format("{}x{}x{}", s.c, s.h, s.w); }

std::string geometry(const Op& op) {
  const std::string text = to_string(op);
  const std::size_t open = text.find('(');
  return open == std::string::npos ? "" : text.substr(open + 1, text.rfind(')') - open - 1);
}

std::string list_networks(Format format) {
  TextTable table;
  table.columns = {"network", ">image",         ">smallest",  ">channels", ">classes",
                   "softmax", "input_gradient", "accumulate", "source"};
  const auto yes = [](bool value) { return std::string(value ? "yes" : "no"); };
  for (const nets::Info& info : nets::list())
    table.rows.push_back({std::string(info.name), fmt::format("{}", info.image), fmt::format("{}", info.smallest_image),
                          fmt::format("{}", info.channels), fmt::format("{}", info.classes), yes(info.protocol.softmax),
                          yes(info.protocol.input_gradient), yes(info.protocol.accumulate), std::string(info.source)});
  return table.print(format);
}

std::string describe(const DescribeOptions& options) {
  if (options.configs.dtypes.size() > 1) throw UsageError("describe takes one --dtype");
  TextTables tables(options.format, {"network"},
                    {"name", "op", "geometry", "output", ">parameters", ">multiply_adds", ">bytes"});
  std::string all;
  for (const std::string& network : options.networks) {
    const Network info = bench::network(network, options.net);
    const Graph graph = graph_of({info.name, "", DType::f32, Layout::nchw, 1}, options.net);
    const auto add = [&](std::string name, std::string op, std::string what, const Shape& output,
                         std::int64_t parameters, std::int64_t products, std::int64_t bytes) {
      tables.add({info.name}, {std::move(name), std::move(op), std::move(what), image_text(output),
                               fmt::format("{}", parameters), fmt::format("{}", products), fmt::format("{}", bytes)});
    };
    std::int64_t bytes = 0;
    for (const Node& node : graph.nodes()) {
      std::int64_t products = 0, moved = 0;
      if (!node.inputs.empty()) {
        const std::vector<Shape> x = input_shapes(graph, node);
        products = multiply_adds(node.op, x);
        moved = static_cast<std::int64_t>(cost(node.op, x, Pass::forward, options.configs.dtypes.front()).bytes);
      }
      bytes += moved;
      std::string what = geometry(node.op);
      int owner = -1;
      for (const Slot& of : node.params_of) owner = std::max(owner, of.node);
      if (owner >= 0) what += (what.empty() ? "of " : ", of ") + graph.nodes()[static_cast<std::size_t>(owner)].name;
      add(node.name, std::string(op_name(node.op)), std::move(what), node.shape, own_parameters(node), products, moved);
    }
    add("total", "", fmt::format("{} layers", graph.nodes().size() - 1), graph.nodes().back().shape,
        graph.parameter_count(), graph.multiply_adds(), bytes);
    all += tables.take(fmt::format("{}: {}", info.name, info.source),
                       fmt::format("\nPer image. Bytes: what a forward pass in {} reads and writes, every tensor once, "
                                   "at a batch of one.\n",
                                   to_string(options.configs.dtypes.front())));
  }
  return all;
}

std::string describe_algorithms(Session& session, const DescribeOptions& options) {
  TextTables tables(options.format, {"network", "backend", ">batch"}, {"layer", "pass", "algorithm", "reason"});
  std::string all;
  for (const Config& c : configs(session.backends, options.configs, options.net, options.networks)) {
    const bool measures = options.plan.options.choice.measure;
    for (const Line& line : measures ? measured(session, c) : lowered(session, c))
      tables.add({c.network, c.backend, fmt::format("{}", c.batch)},
                 {line.layers, line.passes, line.algorithm, line.reason});
    all += tables.take(fmt::format("{}, {}, {}, {}", to_string(c), to_string(c.dtype), to_string(c.layout),
                                   mode_name(options.plan.options.mode)));
  }
  return all;
}

std::string describe_memory(Session& session, const MemoryOptions& options) {
  const bool text = options.format == Format::text;
  std::optional<Optimiser> optimiser;
  if (!options.optimiser.empty()) optimiser = named_optimiser(options.optimiser).optimiser;
  const std::size_t limit = options.backends.memory_limit;
  const bool limited = options.backends.has_memory_limit();
  ResultFile results(options.out);
  begin(results, session.backends, "memories");
  std::vector<Mode> modes = {Mode::training, Mode::inference};
  if (!session.plans.trains()) modes.erase(modes.begin());
  std::vector<TextTable::Column> columns = {"MiB"};
  for (const Mode mode : modes) columns.emplace_back(std::string(">") + mode_name(mode));
  TextTables tables(options.format, {"network", "backend", ">batch"}, columns);
  std::string all;
  for (const Config& c : configs(session.backends, options.configs, options.net, options.networks)) {
    std::vector<MemoryPredictor> predictors;
    std::vector<MemoryReport> reports;
    for (const Mode mode : modes)
      reports.push_back(predictors.emplace_back(MemoryPredictor{session, c, mode, optimiser}).at(c.batch));
    const auto add = [&](std::string_view kind, const auto& text_of_mode) {
      std::vector<std::string> row = {std::string(kind)};
      for (std::size_t i = 0; i < modes.size(); ++i) row.push_back(text_of_mode(i));
      tables.add({c.network, c.backend, fmt::format("{}", c.batch)}, std::move(row));
    };
    if (results.wanted()) {
      std::vector<std::string> more;
      if (!options.optimiser.empty()) more.push_back("--optimiser=" + options.optimiser);
      const std::string again = rerun("memory", c, options, more);
      for (const MemoryPredictor& each : predictors) results.add("memories", memory_json(each, options), again);
    }
    for (const auto& kind : kinds) add(kind.first, [&](std::size_t i) { return mib(reports[i].*kind.second); });
    add("total", [&](std::size_t i) { return mib(reports[i].total()); });
    if (!text && limited)
      add("largest batch", [&](std::size_t i) { return fmt::format("{}", predictors[i].largest_under(limit).batch); });
    std::string foot =
        "\nBlocks in the arena share its memory where their lives do not overlap: they sum to more than it.\n";
    if (!std::ranges::all_of(reports, &MemoryReport::workspace_exact)) foot += "The workspace is an upper bound.\n";
    for (std::size_t i = 0; text && limited && i < modes.size(); ++i)
      foot += fmt::format("{}: {}.\n", modes[i] == Mode::training ? "Training" : "Inference",
                          text_of(predictors[i].largest_under(limit), limit));
    all += tables.take(
        fmt::format("{}, {}{}{}", to_string(c), to_string(c.dtype),
                    options.plan.options.keep == Keep::cheap ? ", keeping what is expensive to make again" : "",
                    optimiser ? ", training by " + to_string(*optimiser) : ""),
        foot);
  }
  finish(results, session.peaks);
  return all;
}

int check_networks(Session& session, const CheckOptions& options, const Print& print) {
  bool right = true;
  for (const Config& c : configs(session.backends, options.configs, options.net, options.networks)) try {
      GradientCheck how = options.how;
      how.progress = [&c](const std::string& next) { show_step(fmt::format("{}: {}", to_string(c), next)); };
      if (const TensorFile weights = session.plans.weights(c); !weights.empty())
        how.start = [weights](Plan& plan) { load_weights(plan, weights); };
      const GradientReport report = check_gradients(session.plans.graph(c), session.backends.usable(c.backend),
                                                    session.plans.options(c, Mode::training), how);
      clear_step();
      print(fmt::format("{}, {}:\n{}", to_string(c), to_string(c.dtype), to_string(report)));
      right = report.passed() && right;
    } catch (const Unsupported& error) {
      clear_step();
      print(fmt::format("{}: not supported: {}\n", to_string(c), error.what()));
      right = false;
    }
  return right ? 0 : 1;
}

}  // namespace lamina::bench
