// The commands that measure a result again.

#include "rerun.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

namespace lamina::bench {
namespace {

using Words = std::vector<std::string>;

void add_switch(Words& words, const char* name, const std::optional<bool>& on) {
  if (on) words.push_back(fmt::format("--{}{}", *on ? "" : "no_", name));
}

void add_network(Words& words, const NetSettings& net) {
  if (!net.onnx_settings.extents.empty()) {
    Words pairs;
    for (const auto& [name, extent] : net.onnx_settings.extents) pairs.push_back(fmt::format("{}={}", name, extent));
    words.push_back(fmt::format("--onnx_extents={}", fmt::join(pairs, ",")));
  }
  if (!net.onnx_settings.output.empty()) words.push_back("--onnx_output=" + net.onnx_settings.output);
  if (net.image != 0) words.push_back(fmt::format("--image={}", net.image));
  if (net.width_divisor != 1) words.push_back(fmt::format("--width_divisor={}", net.width_divisor));
  add_switch(words, "softmax", net.softmax);
}

void add_backends(Words& words, const BackendSettings& backends) {
  if (backends.threads != 0) words.push_back(fmt::format("--threads={}", backends.threads));
  if (!backends.instruction_set.empty()) words.push_back("--instruction_set=" + backends.instruction_set);
  if (!backends.cudnn.empty()) words.push_back("--cudnn=" + backends.cudnn);
  if (backends.memory_limit != std::numeric_limits<std::size_t>::max())
    words.push_back(fmt::format("--memory_limit={}", backends.memory_limit));
}

void add_plan(Words& words, const PlanSettings& plan) {
  const Choice usual;
  if (plan.mode == Mode::inference) words.emplace_back("--inference");
  if (plan.keep == Keep::cheap) words.emplace_back("--keep=cheap");
  if (!plan.fuse) words.emplace_back("--unfused");
  add_switch(words, "input_gradient", plan.input_gradient);
  add_switch(words, "accumulate", plan.accumulate);
  if (plan.choice.math == Math::tf32) words.emplace_back("--math=tf32");
  if (plan.choice.deterministic) words.emplace_back("--deterministic");
  if (plan.choice.max_error != usual.max_error) words.push_back(fmt::format("--max_error={:g}", plan.choice.max_error));
  if (plan.choice.workspace_limit != usual.workspace_limit)
    words.push_back(fmt::format("--workspace_limit={}", plan.choice.workspace_limit));
  if (plan.choice.measure) words.emplace_back("--measure");
  if (!plan.choice_cache.empty()) words.push_back("--choice_cache=" + plan.choice_cache.string());
}

/// `first`: the words before the flags, without the network's name.
std::string command(Words first, bool with_network, const Config& c, const PlanningSettings& settings,
                    const Words& more) {
  const auto file = std::ranges::find(settings.net.onnx, c.network, network_name);
  const auto layer = std::ranges::find(settings.net.layers, c.network, &Layer::name);
  const bool is_layer = layer != settings.net.layers.end();
  if (is_layer)
    first.insert(first.erase(first.begin() + 1, first.end()), layer->words.begin(), layer->words.end());
  else if (file != settings.net.onnx.end())
    first.push_back("--onnx=" + file->string());
  else if (with_network)
    first.push_back(c.network);
  first.push_back("--backend=" + c.backend);
  if (!is_layer && c.batch > 0 && c.batch != Config().batch) first.push_back(fmt::format("--batch={}", c.batch));
  if (c.dtype != DType::f32) first.push_back(fmt::format("--dtype={}", to_string(c.dtype)));
  if (c.layout != Layout::nchw) first.push_back(fmt::format("--layout={}", to_string(c.layout)));
  add_network(first, settings.net);
  add_backends(first, settings.backends);
  add_plan(first, settings.plan);
  first.insert(first.end(), more.begin(), more.end());
  return (settings.net.ranks > 1 ? fmt::format("mpirun -n {} ", settings.net.ranks) : "") + shell_line(first);
}

/// The expression that picks this row alone.
std::string exactly(const std::string& name) {
  std::string expression = "^";
  for (const char c : name) {
    if (std::string_view(".^$*+?()[]{}|\\").find(c) != std::string_view::npos) expression += '\\';
    expression += c;
  }
  return expression + "$";
}

}  // namespace

std::string shell_line(const std::vector<std::string>& words) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  std::string line;
  for (const std::string& word : words) {
    line += line.empty() ? "" : " ";
    if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

std::string rerun(const char* subcommand, const Config& c, const PlanningSettings& settings, const Words& more) {
  return command({"lamina_bench", subcommand}, true, c, settings, more);
}

std::string rerun_row(const std::string& name, const Config& c, const PlanningSettings& settings, const Words& more) {
  return command({"lamina_bench", "run", "--benchmark_filter=" + exactly(name)}, false, c, settings, more);
}

std::vector<std::string> passes_flag(int passes) {
  return passes > 0 ? Words{fmt::format("--passes={}", passes)} : Words{};
}

}  // namespace lamina::bench
