// The key of a row or another result, and the commands that measure the row again.

#include "row_key.h"

#include <algorithm>

#include <fmt/format.h>

namespace lamina::bench {
namespace {

using Words = std::vector<std::string>;

/// A command line for one network. `first`: the words before the flags, without the network's name.
std::string command(Words first, bool with_network, const Config& c, PlanningSettings settings, const Words& more) {
  const auto layer = std::ranges::find(settings.net.layers, c.network, &Layer::name);
  const bool is_layer = layer != settings.net.layers.end();
  std::erase_if(settings.net.onnx, [&](const auto& file) { return is_layer || network_name(file) != c.network; });
  if (settings.net.onnx.empty()) settings.net.onnx_settings = {};
  settings.backends.names = {c.backend};
  settings.configs = {{is_layer || c.batch == 0 ? Config().batch : c.batch}, {c.dtype}, {c.layout}};
  if (is_layer)
    first.insert(first.erase(first.begin() + 1, first.end()), layer->words.begin(), layer->words.end());
  else if (settings.net.onnx.empty() && with_network)
    first.push_back(c.network);
  for (const Words& flags : {arguments_of(settings), more}) first.insert(first.end(), flags.begin(), flags.end());
  return (settings.net.ranks > 1 ? fmt::format("mpirun -n {} ", settings.net.ranks) : "") + shell_line(first);
}

/// The regular expression that matches only this row's name.
std::string exactly(const std::string& name) {
  std::string expression = "^";
  for (const char c : name) {
    if (std::string_view(".^$*+?()[]{}|\\").find(c) != std::string_view::npos) expression += '\\';
    expression += c;
  }
  return expression + "$";
}

}  // namespace

RowKey key_of(const char* what, const Config& c, std::string_view part, const PlanningSettings& settings,
              std::string_view layer, std::string_view algorithm) {
  const Math math = settings.plan.options.choice.math;  // tf32 takes the place of the type f32
  KeyOf of{.what = what, .part = part, .backend = c.backend};
  of.of_file = std::ranges::find(settings.net.onnx, c.network, network_name) != settings.net.onnx.end();
  if (of.what != "train") {  // a training may have a workload's name
    const Network its = network(c.network, settings.net);
    const auto [softmax, input_gradient, accumulate] = its.protocol;
    const auto word = [](bool is) { return std::string(is ? "1" : "0"); };
    of.as_published = {{"image", fmt::format("{}", its.image)},
                       {"softmax", word(softmax)},
                       {"input_gradient", word(input_gradient)},
                       {"accumulate", word(accumulate)}};
  }
  RowKey key = {{"what", what}, {"network", c.network}};
  if (!layer.empty()) key["layer"] = layer;
  key["part"] = part;
  key["backend"] = c.backend;
  if (!algorithm.empty()) key["algorithm"] = algorithm;
  key["type"] = math == Math::strict ? to_string(c.dtype) : to_string(math);
  key["layout"] = to_string(c.layout);
  key["batch"] = c.batch;
  for (const auto& [name, value] : differs_of(settings, of)) key["differs"][name] = value;
  return key;
}

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
