// Everything that a training needs to go on, as a safetensors file. Parameters and running statistics have their own
// names. The rest begins with "trainer/":
//
//     trainer/description       the description, a number for each byte
//     trainer/counters          epoch, batch, updates
//     trainer/scores            loss and accuracy of each batch of the present epoch
//     trainer/epochs            training loss and accuracy, validation loss and accuracy of each complete epoch
//     trainer/seconds           seconds of the present epoch; for each complete epoch, seconds in all and of validation
//     trainer/steps/<state>     a dropout's step: its high and its low 32 bits
//     trainer/optimiser/<name>  the optimiser's state
//     trainer/loss_scale        in f16: the loss scale
//     trainer/scaled_updates    in f16: updates that were not skipped, since the scale changed and in all
//     trainer/checksum          checksum of all other entries: high and low 32 bits; older files have none

#include "checkpoint.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <sstream>
#include <utility>

#include "lamina/error.h"
#include "lamina/random.h"
#include "lamina/safetensors.h"
#include "lib/core/text/difference.h"

namespace lamina::training {
namespace {

const std::string prefix = "trainer/", steps_prefix = "trainer/steps/", optimiser_prefix = "trainer/optimiser/";

HostTensor numbers(std::vector<double> values, std::int64_t columns = 1) {
  const auto rows = static_cast<std::int64_t>(values.size()) / columns;
  return {DType::f64, {rows, columns}, std::move(values)};
}

/// A checksum. It differs between two files that differ in one number or one name. The bits of a NaN do not count.
HostTensor checksum(const TensorFile& file) {
  std::uint64_t sum = 0;
  for (const auto& [name, tensor] : file) {
    sum ^= hash(name);
    for (const double value : tensor.values) {
      const double counted = std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
      sum = std::rotl((sum ^ std::bit_cast<std::uint64_t>(counted)) * 0x9E3779B97F4A7C15U, 29);
    }
  }
  return numbers({static_cast<double>(sum >> 32), static_cast<double>(sum & 0xFFFFFFFFU)});
}

/// The entries of a checkpoint, taken out one by one.
class Entries {
 public:
  Entries(TensorFile file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}

  /// The numbers of an entry. Throws FileError unless there are `count` numbers, if `count` is given.
  std::vector<double> take(const std::string& entry, std::optional<std::size_t> count = {}) {
    const auto found = file_.find(entry);
    if (found == file_.end())
      throw FileError(name_ + ": not a checkpoint of a training: '" + entry +
                      "' is missing; give another file, or remove it");
    std::vector<double> values = std::move(found->second.values);
    file_.erase(found);
    if (count && values.size() != *count)
      throw FileError(name_ + ": '" + entry + "' has " + std::to_string(values.size()) + " numbers, not " +
                      std::to_string(*count));
    return values;
  }

  /// Whole numbers from 0 to 2^53.
  std::vector<std::uint64_t> take_whole(const std::string& entry, std::size_t count) {
    std::vector<std::uint64_t> whole;
    for (const double value : take(entry, count)) {
      if (!(value >= 0 && value <= 0x1p53) || value != std::floor(value))
        throw FileError(name_ + ": '" + entry + "' has " + std::to_string(value) + ", which is not a counter");
      whole.push_back(static_cast<std::uint64_t>(value));
    }
    return whole;
  }

  TensorFile rest() && { return std::move(file_); }

 private:
  TensorFile file_;
  std::string name_;
};

/// A fingerprint of a schedule, from its values at 0 and at the powers of two.
std::uint64_t fingerprint(const Schedule& rate) {
  constexpr std::uint64_t last = std::uint64_t{1} << 40;
  std::string bits;
  for (std::uint64_t updates = 0; updates <= last; updates = std::max<std::uint64_t>(2 * updates, 1))
    bits += std::to_string(std::bit_cast<std::uint64_t>(rate(updates))) + ' ';
  return hash(bits);
}

/// A fingerprint of a source, from up to eight of its samples. They are spread evenly over the source and include its
/// first sample.
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

std::vector<std::string> counters_of(const Plan& plan) {
  std::vector<std::string> names;
  for (std::string& name : plan.state_names())
    if (plan.state(name).dtype == DType::u64) names.push_back(std::move(name));
  return names;
}

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

void save_checkpoint(const std::filesystem::path& path, const Plan& plan, const RunState& run) {
  Device& device = plan.backend().device();
  TensorFile file = save_weights(plan);
  for (const auto& [name, tensor] : file)
    if (!std::ranges::all_of(tensor.values, [](double value) { return std::isfinite(value); }))
      throw Error(name + " has numbers that are not finite; " + path.string() +
                  " is left as it was; begin anew, with another file and a lower learning_rate or a clip_norm");
  file[prefix + "description"] = numbers({run.description.begin(), run.description.end()});
  file[prefix + "counters"] =
      numbers({static_cast<double>(run.epoch), static_cast<double>(run.batch), static_cast<double>(plan.updates())});
  std::vector<double> scores, epochs, seconds{run.seconds};
  for (const Score& score : run.scores) scores.insert(scores.end(), {score.loss, score.accuracy});
  for (const EpochResult& e : run.complete) {
    epochs.insert(epochs.end(), {e.training.loss, e.training.accuracy, e.validation.loss, e.validation.accuracy});
    seconds.insert(seconds.end(), {e.seconds, e.validation_seconds});
  }
  file[prefix + "scores"] = numbers(std::move(scores), 2);
  file[prefix + "epochs"] = numbers(std::move(epochs), 4);
  file[prefix + "seconds"] = numbers(std::move(seconds));
  for (const std::string& name : counters_of(plan)) {
    std::uint64_t step = 0;
    device.download(&step, plan.state(name).data, sizeof step);
    file[steps_prefix + name] = numbers({static_cast<double>(step >> 32), static_cast<double>(step & 0xffffffffU)});
  }
  if (plan.options().loss_scale > 0) {
    const LossScale now = plan.loss_scale();
    file[prefix + "loss_scale"] = numbers({static_cast<double>(now.scale)});
    file[prefix + "scaled_updates"] = numbers({static_cast<double>(now.good), static_cast<double>(now.updates)});
  }
  for (const std::string& name : plan.optimiser_state_names()) {
    const Tensor state = plan.optimiser_state(name);
    std::vector<double> values(static_cast<std::size_t>(state.shape.count()));
    download(device, std::span<double>(values), state);
    file[optimiser_prefix + name] = {state.dtype, {state.shape.count()}, std::move(values)};
  }
  file[prefix + "checksum"] = checksum(file);
  write_safetensors(path, file);
}

RunState load_checkpoint(const std::filesystem::path& path, Plan& plan, const std::string& description) {
  Device& device = plan.backend().device();
  TensorFile file = read_safetensors(path);
  if (const auto kept = file.extract(prefix + "checksum"); kept && kept.mapped().values != checksum(file).values)
    throw FileError(path.string() +
                    " is damaged: its numbers are not those that were written; give a copy that is "
                    "whole, or remove the file to begin anew");
  Entries entries(std::move(file), path.string());
  RunState run;
  for (const double byte : entries.take(prefix + "description"))
    run.description += byte >= 0 && byte < 128 ? static_cast<char>(byte) : '?';
  if (run.description != description)
    throw UsageError(path.string() + " is the checkpoint of another run: " +
                     difference("it has", run.description, "this run", description) +
                     "; give another file, or remove it");
  const auto counters = entries.take_whole(prefix + "counters", 3);
  run.epoch = counters[0];
  run.batch = static_cast<std::int64_t>(counters[1]);
  const auto scores = entries.take(prefix + "scores", 2 * counters[1]);
  for (std::size_t i = 0; i < scores.size(); i += 2) run.scores.push_back({scores[i], scores[i + 1]});
  const auto epochs = entries.take(prefix + "epochs", 4 * run.epoch);
  const auto seconds = entries.take(prefix + "seconds", 1 + 2 * run.epoch);
  run.seconds = seconds[0];
  for (std::size_t e = 0; e < run.epoch; ++e)
    run.complete.push_back({e,
                            {epochs[4 * e], epochs[4 * e + 1]},
                            {epochs[4 * e + 2], epochs[4 * e + 3]},
                            seconds[1 + 2 * e],
                            seconds[2 + 2 * e]});

  std::vector<std::pair<Tensor, std::uint64_t>> steps;
  for (const std::string& name : counters_of(plan)) {
    const auto words = entries.take_whole(steps_prefix + name, 2);
    steps.emplace_back(plan.state(name), (words[0] << 32) | words[1]);
  }
  std::vector<std::pair<Tensor, std::vector<double>>> states;
  for (const std::string& name : plan.optimiser_state_names()) {
    const Tensor state = plan.optimiser_state(name);
    states.emplace_back(state, entries.take(optimiser_prefix + name, static_cast<std::size_t>(state.shape.count())));
  }
  LossScale loss_scale;
  if (plan.options().loss_scale > 0) {
    const double scale = entries.take(prefix + "loss_scale", 1)[0];
    if (!(scale > 0) || !std::isfinite(scale))
      throw FileError(path.string() + ": a loss scale of " + std::to_string(scale) +
                      "; it should be above 0 and finite");
    const auto good_and_all = entries.take_whole(prefix + "scaled_updates", 2);
    loss_scale.scale = static_cast<float>(scale);
    loss_scale.good = static_cast<std::uint32_t>(good_and_all[0]);
    loss_scale.updates = good_and_all[1];
  }
  load_weights(plan, std::move(entries).rest(), path.string());  // last step that can fail; then nothing has changed
  for (const auto& [state, step] : steps) device.upload(state.data, &step, sizeof step);
  for (const auto& [state, values] : states) upload(device, state, std::span<const double>(values));
  plan.set_updates(counters[2]);
  if (plan.options().loss_scale > 0) plan.set_loss_scale(loss_scale);
  return run;
}

}  // namespace lamina::training
