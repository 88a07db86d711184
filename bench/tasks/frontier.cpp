// Measures every algorithm of a network's convolutions and fully connected layers in turns. Finds the algorithms that
// no other beats and the fastest choices under limits, and times the whole network with these choices.

#include "frontier.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/io/interrupt.h"
#include "bench/measure/layers.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

/// The step that the backend takes for the pass by rule, under the options' demands. Empty: the backend refuses.
Lowered::Step step_by_rule(Session& session, const Config& c, const Graph& graph, const Node& node, Pass pass) {
  try {
    Backend& backend = session.backends.at(c.backend);
    const Lowered lowered = backend.lower(spec_of(backend, graph, node, c, true), session.plans.choice());
    const auto step = std::ranges::find_if(lowered.steps, [&](const auto& each) { return each.covers(pass); });
    if (step != lowered.steps.end()) return *step;
  } catch (const Unsupported&) {  // the rule has no algorithm
  } catch (const OutOfMemory&) {  // the rule has no algorithm
  }
  return {};
}

/// Checks the results of the algorithms of one layer and pass: their error and their bits.
class OutputCheck {
 public:
  explicit OutputCheck(Device& device) : device_(device) {}

  void inspect(Candidate& one, const Spec& spec, Pass pass, const Args& args) {
    const std::uint64_t bits = bits_of(device_, results_of(pass, args));
    if (one.measured.runs_compared++ == 0) {
      first_bits_[one.algorithm] = bits;
      if (!has_reference(spec.op)) return;
      auto& reference = references_[spec.y.shape.n];
      if (!reference) reference = reference_of(device_, spec.op, pass, args);
      one.measured.error = error_of(device_, pass, args, *reference).of_terms;
    }
    one.measured.same_bits = one.measured.same_bits && bits == first_bits_[one.algorithm];
  }

 private:
  Device& device_;
  std::map<std::string, std::uint64_t> first_bits_;
  std::map<int, std::optional<Reference>> references_;  ///< {batch: reference}; the tuner may time one image first
};

/// A buffer of the greatest of the sizes that can be allocated. Algorithms that need more fail, with the reason.
Buffer memory_for(Device& device, std::vector<std::size_t> sizes) {
  for (; !sizes.empty(); sizes.pop_back()) {
    try {
      return {device, sizes.back()};
    } catch (const OutOfMemory&) {
      // The next size is smaller.
    }
  }
  return {device, 0};
}

/// A layer and pass whose algorithms are to be timed.
struct TunedLayer {
  const Node* node;
  int layers;
  Pass pass;
  Cost work;
};

std::vector<TunedLayer> tuned_layers(Session& session, const Config& c, const Graph& graph) {
  const std::vector<bool> wanted =
      wanted_gradients(graph, {.input_gradient = session.plans.protocol(c.network).input_gradient});
  const auto wants_dx = [&](const Node* node) { return wanted[static_cast<std::size_t>(node->inputs.front())]; };
  std::vector<TunedLayer> lines;
  for (const DistinctLayer& layer : distinct_layers(graph)) {
    const Node& node = layer.first();
    if (!has_reference(node.op) && graph.nodes().size() > 2) continue;
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_params}) {
      if (pass != Pass::forward && !session.plans.trains()) break;
      const int layers =
          pass == Pass::backward_data ? static_cast<int>(std::ranges::count_if(layer.nodes, wants_dx)) : layer.count();
      const Cost work = cost(node.op, input_shapes(graph, node), pass, c.dtype);
      if (layers > 0 && work.bytes > 0) lines.push_back({&node, layers, pass, work});
    }
  }
  return lines;
}

/// The order of two measurements by time: -1, 1 or, if tied, 0. An algorithm that left the race was clearly slower than
/// the best algorithm, but its rounds may be too few to show this here.
int by_time(const Measurement& a, const Measurement& b) {
  const Interval ratio = ratio_interval(b.seconds, a.seconds);
  if (ratio.high < 1) return -1;
  if (ratio.low > 1) return 1;
  return static_cast<int>(b.finished) - static_cast<int>(a.finished);
}

}  // namespace

double guessed_seconds(Session& session, const Config& c, const TuningRules& rules) {
  constexpr double share_of_peak = 0.5;
  const double peak = session.peaks.of(c.backend, c.dtype).flops_per_second;
  if (peak <= 0) return 0;
  const Graph graph = session.plans.graph(c);
  double flops = 0;
  for (const TunedLayer& line : tuned_layers(session, c, graph)) {
    const double algorithms =
        static_cast<double>(algorithms_of(session.backends, c, graph, *line.node, line.pass).size());
    const double passes = line.pass == Pass::forward ? 1 : 3;  // backward follows a forward, and may make two gradients
    flops += line.work.flops * passes * algorithms * static_cast<double>(rules.race.rounds + 1);
  }
  return flops / (share_of_peak * peak);
}

Frontier make_frontier(Session& session, const Config& c, const TuningRules& rules,
                       const std::function<void(const std::string&)>& progress) {
  const Graph graph = session.plans.graph(c);
  const std::vector<TunedLayer> lines = tuned_layers(session, c, graph);
  Backend& backend = session.backends.at(c.backend);
  Choice demands{.math = session.plans.choice().math};  // other limits are applied after measuring
  demands.workspace_limit = std::max(demands.workspace_limit, session.plans.choice().workspace_limit);
  Frontier frontier{c, {}, lines.size()};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto& [node, layers, pass, work] = lines[i];
    progress(fmt::format("[{}/{}] {} of {} on {}, {}", i + 1, lines.size(), node->name, c.network, c.backend,
                         to_string(pass)));
    const Spec spec = spec_of(backend, graph, *node, c, true);
    OutputCheck check(backend.device());
    TuningRules line_rules = rules;
    const Lowered::Step by_rule = step_by_rule(session, c, graph, *node, pass);
    line_rules.rule = by_rule.algorithm;
    for (const NamedAlgorithm& known : algorithms_of(session.backends, c, graph, *node, pass))
      line_rules.further.push_back(known.name);
    line_rules.even_alone = true;
    line_rules.before_run = [] {
      if (interrupted() != 0) throw Interrupted();
    };
    line_rules.look = [&check, pass](Candidate& one, const Spec& unit, const Args& args) {
      check.inspect(one, unit, pass, args);
    };
    try {
      const Buffer buffer = memory_for(backend.device(), bytes_to_tune(backend, spec, pass, demands));
      frontier.lines.push_back({node->name, std::string(op_name(node->op)), layers, work, by_rule.reason,
                                tune(backend, spec, pass, demands, buffer.data(), buffer.size_bytes(), line_rules)});
    } catch (const Interrupted&) {
      frontier.cut_layer = node->name;
      break;
    }
  }
  return frontier;
}

bool is_deterministic(const Measurement& one) { return one.deterministic && one.same_bits; }

bool within(const Measurement& one, const Choice& limits) {
  return one.workspace_bytes <= limits.workspace_limit && one.error <= limits.max_error &&
         (is_deterministic(one) || !limits.deterministic);
}

LayerTuning::Picked pick_within(const LayerTuning& tuning, const Choice& limits) {
  return pick(tuning.candidates, [&](const Candidate& one) { return within(one.measured, limits); });
}

bool dominates(const Measurement& a, const Measurement& b) {
  if (a.workspace_bytes > b.workspace_bytes || !(a.error <= b.error)) return false;
  if (is_deterministic(b) && !is_deterministic(a)) return false;
  if (const int order = by_time(a, b); order != 0) return order < 0;
  return a.workspace_bytes < b.workspace_bytes || a.error < b.error || (is_deterministic(a) && !is_deterministic(b));
}

std::vector<bool> not_beaten(const std::vector<Candidate>& candidates) {
  std::vector<bool> stays;
  for (const Candidate& one : candidates)
    stays.push_back(one.ran() && std::none_of(candidates.begin(), candidates.end(), [&](const Candidate& other) {
                      return other.ran() && dominates(other.measured, one.measured);
                    }));
  return stays;
}

FastestNet fastest_net(const Frontier& frontier, const Choice& limits) {
  FastestNet net;
  bool rule_is_known = true;
  const auto seconds = [](const FrontierLine& line, const Candidate& one) {
    return line.layers * median_interval(one.measured.seconds).middle;
  };
  for (const FrontierLine& line : frontier.lines) {
    const std::vector<Candidate>& all = line.tuning.candidates;
    const auto rule = std::find_if(all.begin(), all.end(), [](const Candidate& c) { return c.by_rule && c.ran(); });
    rule_is_known = rule_is_known && rule != all.end();
    if (rule != all.end()) net.by_rule_seconds += seconds(line, *rule);
    const LayerTuning::Picked& picked = net.picks.emplace_back(pick_within(line.tuning, limits));
    if (!picked.best) {
      net.missing.push_back(fmt::format("{}, {}", line.node, to_string(line.pass())));
      continue;
    }
    const Candidate& best = all[*picked.best];
    net.as_by_rule = net.as_by_rule && best.by_rule;
    (line.pass() == Pass::forward ? net.forward_seconds : net.backward_seconds) += seconds(line, best);
  }
  if (!rule_is_known) net.by_rule_seconds = 0;
  return net;
}

std::map<std::string, Choice> choices_of(Session& session, const Frontier& frontier, const FastestNet& net) {
  const Graph graph = session.plans.graph(frontier.config);
  std::map<std::string, Algorithms> by_layer;
  for (std::size_t i = 0; i < frontier.lines.size(); ++i) {
    const FrontierLine& line = frontier.lines[i];
    if (const auto& best = net.picks[i].best)
      by_layer[line.node][static_cast<std::size_t>(line.pass())] = line.tuning.candidates[*best].algorithm;
  }
  std::map<std::string, Choice> choices;
  for (const DistinctLayer& layer : distinct_layers(graph)) {
    const auto found = by_layer.find(layer.first().name);
    if (found == by_layer.end()) continue;
    Choice choice = session.plans.choice();
    choice.algorithm = found->second;
    for (const Node* node : layer.nodes) choices[node->name] = choice;
  }
  return choices;
}

std::string why_not_planned(Session& session, const Config& c, const std::map<std::string, Choice>& choices) {
  const Graph graph = session.plans.graph(c);
  Backend& backend = session.backends.at(c.backend);
  Options options = session.plans.options(c);
  options.choice_of = choices;
  std::string why;
  try {
    predict_memory(graph, backend, options);
    return {};
  } catch (const Error& error) {
    why = error.what();
  }
  Choice unlimited = options.choice;
  unlimited.workspace_limit = std::numeric_limits<std::size_t>::max();
  std::vector<std::string> needs, refused;
  for (const DistinctLayer& layer : distinct_layers(graph)) {
    if (has_reference(layer.first().op)) continue;
    try {
      std::size_t most = 0;
      for (const Lowered::Step& step : backend.lower(spec_of(backend, graph, layer.first(), c, true), unlimited).steps)
        most = std::max(most, step.kernel->workspace_bytes());
      if (most > options.choice.workspace_limit)
        needs.push_back(fmt::format("{} {}", layer.first().name, bytes_text(static_cast<double>(most))));
    } catch (const Error&) {
      refused.push_back(layer.first().name);
    }
  }
  if (!needs.empty()) why += fmt::format(". Layers without a choice need: {}", fmt::join(needs, ", "));
  if (!refused.empty()) why += fmt::format(". Failed with any workspace: {}", fmt::join(refused, ", "));
  return why;
}

WholeNet time_whole(Session& session, const Config& c, const std::map<std::string, Choice>& choices, int samples) {
  Backend& backend = session.backends.at(c.backend);
  const Options by_rule = session.plans.options(c);
  Options picked = by_rule;
  picked.choice_of = choices;
  Plan plans[] = {Plan(session.plans.graph(c), backend, by_rule), Plan(session.plans.graph(c), backend, picked)};
  Stopwatch stopwatch(backend.device());
  Rounds rounds[2];
  for (int round = 0; round <= samples; ++round) {
    for (const std::size_t k : {0U, 1U}) {
      if (interrupted() != 0) return {};
      const std::size_t i = round % 2 == 0 ? k : 1 - k;
      const double seconds = stopwatch
                                 .time([&] {
                                   plans[i].forward();
                                   if (session.plans.trains()) plans[i].backward();
                                 })
                                 .seconds;
      if (round > 0) rounds[i].push_back(seconds);  // the first round warms up
    }
  }
  const auto& [ruled, its] = rounds;
  return {median_interval(its), median_interval(ruled), ratio_interval(ruled, its), its.size()};
}

}  // namespace lamina::bench
