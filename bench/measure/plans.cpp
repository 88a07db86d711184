// Graphs and the options of their plans, as the settings ask for them.

#include "plans.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "lamina/error.h"
#include "layers.h"

namespace lamina::bench {

Plans::Plans(NetSettings net, PlanSettings settings, Backends& backends)
    : net_(net), settings_(std::move(settings)), backends_(&backends) {}

nets::Protocol Plans::protocol(const std::string& network) const {
  nets::Protocol protocol = bench::network(network, net_).protocol;
  protocol.softmax = net_.softmax.value_or(protocol.softmax);
  protocol.input_gradient = settings_.input_gradient.value_or(protocol.input_gradient);
  protocol.accumulate = settings_.accumulate.value_or(protocol.accumulate);
  return protocol;
}

Options Plans::options(const Config& c, Mode mode) {
  Options plan;
  plan.mode = mode;
  plan.dtype = c.dtype;
  plan.layout = c.layout;
  plan.fuse = settings_.fuse;
  plan.choice = settings_.choice;
  if (!settings_.choices.empty()) plan.choice_of = saved_choices(c);
  if (mode == Mode::training) {
    const nets::Protocol its = protocol(c.network);
    plan.keep = settings_.keep;
    plan.input_gradient = its.input_gradient;
    plan.accumulate_parameters = its.accumulate;
  }
  return plan;
}

std::map<std::string, Choice> Plans::saved_choices(const Config& c) {
  if (!choices_) choices_.emplace(settings_.choices);
  const Graph whole = graph(c);
  Backend& backend = backends_->at(c.backend);
  std::map<std::string, Choice> by_node;
  std::set<std::string> taken;  // one entry may serve several layers
  for (const DistinctLayer& layer : distinct_layers(whole)) {
    const ChoiceKey key = choice_key(backend, spec_of(backend, whole, layer.first(), c, true), settings_.choice);
    const std::optional<Algorithms> found = choices_->find(key);
    if (!found) continue;
    taken.insert(to_string(key));
    Choice choice = settings_.choice;
    choice.algorithm = *found;
    for (const Node* node : layer.nodes) by_node[node->name] = choice;
  }
  const std::string file = settings_.choices.string();
  if (by_node.empty())
    throw UsageError(fmt::format(
        "{} has no choice for {} on {} here, with these limits, at batch {}; it holds {} others. Make them with "
        "lamina_bench frontier {} --choices_out={} and the same flags; those of --measure are taken with --measure "
        "--choice_cache",
        file, c.network, c.backend, c.batch, choices_->entries().size(), c.network, file));
  const std::string said = fmt::format("{}: {} of its {} choices hold for {} on {}, batch {}", file, taken.size(),
                                       choices_->entries().size(), c.network, c.backend, c.batch);
  if (said_.insert(said).second) fmt::print(stderr, "{}\n", said);
  return by_node;
}

}  // namespace lamina::bench
