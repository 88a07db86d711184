// What must be the same in a run that goes on from a checkpoint.

#include "description.h"

#include <algorithm>
#include <bit>
#include <span>
#include <sstream>
#include <string_view>
#include <vector>

#include "lamina/random.h"

namespace lamina::training {
namespace {

constexpr std::string_view separator = ", ";

/// A number that differs between two schedules, unless they agree at 0 and at every power of two.
std::uint64_t fingerprint(const Schedule& rate) {
  constexpr std::uint64_t last = std::uint64_t{1} << 40;
  std::string bits;
  for (std::uint64_t updates = 0; updates <= last; updates = std::max<std::uint64_t>(2 * updates, 1))
    bits += std::to_string(std::bit_cast<std::uint64_t>(rate(updates))) + ' ';
  return hash(bits);
}

/// A number that differs between two sources, unless they agree in up to eight samples from the first to the last.
std::uint64_t fingerprint(const Source& source, std::uint64_t seed) {
  constexpr std::int64_t most = 8;
  std::vector<float> values(static_cast<std::size_t>(source.shape().count()) + 1);  // of x, then the label
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

/// The parts of a description; a comma between parentheses, as in an optimiser's numbers, ends none.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth == 0 && text.compare(i, separator.size(), separator) == 0) {
      parts.emplace_back();
      i += separator.size() - 1;
    } else {
      parts.back() += text[i];
    }
  }
  return parts;
}

/// A fingerprint in a description: the words before it, what a user reads in place of both, and what is said where
/// nothing else differs.
struct Fingerprint {
  std::string_view before, shown, said;
};
constexpr Fingerprint fingerprints[] = {{"graph ", "a network", "it has a network of other ops or shapes"},
                                        {" by learning rates ", "", "it has other learning rates"},
                                        {" of data ", "", "it has other samples"}};

/// A part as a user reads it.
std::string shown(std::string part) {
  for (const Fingerprint& each : fingerprints)
    if (const std::size_t at = part.find(each.before); at != part.npos)
      part.replace(at, part.find_first_not_of("0123456789", at + each.before.size()) - at, each.shown);
  return part;
}

/// What a user reads of the parts that others lack.
std::string lacking(const std::vector<std::string>& parts, const std::vector<std::string>& others) {
  std::string text;
  for (const std::string& part : parts)
    if (std::ranges::find(others, shown(part), shown) == others.end())
      text += (text.empty() ? "" : separator.data()) + shown(part);
  return text.empty() ? "nothing else" : text;
}

}  // namespace

std::string describe_run(const Plan& plan, const TrainerOptions& options, const Source& source, std::int64_t samples,
                         int batch) {
  std::string nodes;
  for (const Node& node : plan.graph().nodes()) {
    nodes += node.name + ' ' + to_string(node.op) + ' ' + to_string(node.shape);
    for (const int input : node.inputs) nodes += ' ' + std::to_string(input);
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

std::string difference(const std::string& of_file, const std::string& of_run) {
  const std::vector<std::string> its = parts_of(of_file), ours = parts_of(of_run);
  const std::string in_file = lacking(its, ours), in_run = lacking(ours, its);
  if (in_file != in_run) return "it has " + in_file + ", and this run " + in_run;
  std::string text;
  for (const Fingerprint& each : fingerprints)
    for (const std::string& part : its)
      if (part.find(each.before) != part.npos && std::ranges::find(ours, part) == ours.end())
        text += (text.empty() ? "" : separator.data()) + std::string(each.said);
  return text;
}

}  // namespace lamina::training
