// The description of a run: everything that must be the same when it resumes from a checkpoint.

#include "checkpoint.h"

#include <algorithm>
#include <bit>
#include <span>
#include <sstream>
#include <vector>

#include "lamina/random.h"

namespace lamina::training {
namespace {

/// A fingerprint of a schedule. It differs between two schedules unless they agree at 0 and at every power of two.
std::uint64_t fingerprint(const Schedule& rate) {
  constexpr std::uint64_t last = std::uint64_t{1} << 40;
  std::string bits;
  for (std::uint64_t updates = 0; updates <= last; updates = std::max<std::uint64_t>(2 * updates, 1))
    bits += std::to_string(std::bit_cast<std::uint64_t>(rate(updates))) + ' ';
  return hash(bits);
}

/// A fingerprint of a source. It differs between two sources unless they agree in up to eight samples from the first to
/// the last.
std::uint64_t fingerprint(const Source& source, std::uint64_t seed) {
  constexpr std::int64_t most = 8;
  std::vector<float> values(static_cast<std::size_t>(source.shape().count()) + 1);  // values of x, then the label
  std::string bytes;
  const std::int64_t count = std::min(source.count(), most);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t sample = count == 1 ? 0 : i * (source.count() - 1) / (count - 1);
    source.write(sample, {.seed = seed, .epoch = 0}, std::span(values).first(values.size() - 1), values.back());
    for (const float value : values) bytes += std::to_string(std::bit_cast<std::uint32_t>(value)) + ' ';
    bytes = std::to_string(hash(bytes)) + ' ';
  }
  return hash(bytes);
}

}  // namespace

std::string describe_run(const Plan& plan, const TrainerOptions& options, const Source& source, std::int64_t samples,
                         int batch) {
  std::string nodes;
  for (const Node& node : plan.graph().nodes()) {
    Shape image = node.shape;
    image.n = 1;  // a rank's part of a batch depends on the number of ranks
    const std::string op = std::holds_alternative<Input>(node.op) ? "input" : to_string(node.op);
    nodes += node.name + ' ' + op + ' ' + to_string(image);
    for (const int input : node.inputs) nodes += ' ' + std::to_string(input);
    for (const auto* slots : {&node.params_of, &node.state_of})
      for (const Slot& of : *slots)
        if (of.node >= 0) nodes += " shares " + std::to_string(of.node) + '.' + std::to_string(of.index);
    for (std::size_t k = 0; k < node.fixed.size(); ++k)
      if (node.fixed[k]) nodes += " fixed " + std::to_string(k);
    nodes += '\n';
  }
  std::ostringstream text;
  text << "graph " << hash(nodes) << " of " << plan.graph().parameter_count() << " parameters in "
       << to_string(plan.options().dtype) << ", " << to_string(options.optimiser) << " by learning rates "
       << fingerprint(options.learning_rate) << ", norm up to " << options.clip_norm << ", batch " << batch << " x "
       << options.accumulate << " of " << samples << " samples of data " << fingerprint(source, options.seed) << ", "
       << (options.shuffle ? "shuffled" : "in order") << ", seed " << options.seed;
  if (options.plan.table_updates == TableUpdates::lazy) text << ", lazy updates of tables";
  return text.str();
}

}  // namespace lamina::training
