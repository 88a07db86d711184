// The names of rows, and the filter that picks from them.

#include "names.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "lamina/error.h"
#include "lamina/nets.h"
#include "lib/support/near.h"

namespace lamina::bench {
namespace {

std::string nearest(const std::vector<std::string>& names, const std::string& filter) {
  std::string plain = filter;  // without what only an expression means
  std::erase_if(plain, [](char c) { return std::string_view("^$()[]*+?\\").find(c) != std::string_view::npos; });
  std::vector<std::pair<std::size_t, const std::string*>> ranked;
  for (const std::string& name : names) ranked.emplace_back(edit_distance(plain, name, Match::part), &name);
  const std::size_t shown = std::min<std::size_t>(ranked.size(), 5);
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(shown), ranked.end(),
                    [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += "\n  " + *ranked[i].second;
  return text;
}

}  // namespace

RowKey net_key(const Config& c, std::string_view part, const RunOptions& options) {
  RowKey key = key_of("net", c, part, options);
  if (options.cuda_graph) key.differs.emplace_back("graph", "");
  add_variants(key, options);
  return key;
}

RowKey layer_key(const Config& c, std::string_view node, std::string_view pass, std::string_view algorithm,
                 const RunOptions& options) {
  RowKey key = key_of("layer", c, pass, options);
  key.layer = node;
  key.algorithm = algorithm;
  add_limits(key, options.plan.choice);
  return key;
}

RowKey train_key(const Config& c, const RunOptions& options) {
  PlanningSettings settings = options;
  settings.net.image = 0;  // of networks
  RowKey key = key_of("train", c, "epoch", settings);
  if (options.plan.keep == Keep::cheap) key.differs.emplace_back("recompute", "");
  if (!options.plan.fuse) key.differs.emplace_back("unfused", "");
  add_limits(key, options.plan.choice);
  if (options.plan.choice.measure) key.differs.emplace_back("measured", "");
  if (options.train_data.empty()) key.differs.emplace_back("synthetic", fmt::format("{:g}", options.train_share));
  return key;
}

std::string too_small_for(const NetSettings& net) {
  std::vector<std::string> texts;
  for (const nets::Info& info : nets::list())
    if (net.image != 0 && net.image < info.smallest_image)
      texts.push_back(fmt::format("{} ({})", info.name, info.smallest_image));
  if (texts.empty()) return {};
  return fmt::format("\n--image={} leaves out networks that need larger ones: {}", net.image, fmt::join(texts, ", "));
}

std::vector<bool> pick(const std::vector<std::string>& names, const std::string& filter, const std::string& left_out) {
  std::vector<bool> picked(names.size());
  try {
    const std::regex expression(filter);
    for (std::size_t i = 0; i < names.size(); ++i) picked[i] = std::regex_search(names[i], expression);
  } catch (const std::regex_error& error) {
    throw UsageError(fmt::format("--benchmark_filter \"{}\" is not a regular expression: {}", filter, error.what()));
  }
  if (std::find(picked.begin(), picked.end(), true) == picked.end())
    throw UsageError(fmt::format(
        "--benchmark_filter \"{}\" matches none of {} rows; the nearest are{}\n--benchmark_list_tests prints all{}",
        filter, names.size(), nearest(names, filter), left_out));
  return picked;
}

std::string default_filter(bool quick, const NetSettings& net) {
  if (!net.onnx.empty()) return "^net/.*/(forward|backward|total|inference)/";
  const char* networks = quick ? "resnet18|resnet50|alexnet"
                               : "alexnet|inception_v1|vgg16|vgg19|resnet18|resnet34|resnet50|resnet101|resnet152|"
                                 "resnet200";
  return fmt::format("^net/({})/(forward|backward|total)/", networks);
}

}  // namespace lamina::bench
