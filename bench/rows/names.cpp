// The names of rows, and the filter that picks from them.

#include "names.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "lamina/error.h"
#include "lib/core/text/near.h"

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
  if (options.cold) key.differs.emplace_back("cold", "");
  add_limits(key, options.plan.choice);
  return key;
}

std::vector<bool> pick(const std::vector<std::string>& names, const std::string& filter, const std::string& left_out) {
  constexpr std::size_t longest = 4096;  // std::regex uses the stack for each character
  if (names.empty()) throw UsageError("there are no rows: " + left_out);
  if (filter.size() > longest)
    throw UsageError(
        fmt::format("--benchmark_filter has {} characters, and may have {}; run parts of it one after another",
                    filter.size(), longest));
  const bool negative = filter.starts_with('-');
  std::vector<bool> picked(names.size(), filter == "all");
  try {
    const std::regex expression(filter.substr(negative ? 1 : 0));
    for (std::size_t i = 0; i < names.size(); ++i)
      picked[i] = picked[i] || std::regex_search(names[i], expression) != negative;
  } catch (const std::regex_error& error) {
    throw UsageError(fmt::format("--benchmark_filter \"{}\" is not a regular expression: {}", filter, error.what()));
  }
  if (std::find(picked.begin(), picked.end(), true) == picked.end())
    throw UsageError(fmt::format(
        "--benchmark_filter \"{}\" matches none of {} rows; the nearest are{}\n--benchmark_list_tests prints all{}{}",
        filter, names.size(), nearest(names, filter), left_out.empty() ? "" : "; ", left_out));
  return picked;
}

std::vector<std::string> default_networks(bool quick) {
  if (quick) return {"alexnet", "resnet18", "resnet50"};
  return {"alexnet",  "inception_v1", "vgg16",     "vgg19",     "resnet18",
          "resnet34", "resnet50",     "resnet101", "resnet152", "resnet200"};
}

std::string default_filter(const RunOptions& options) {
  if (options.list) return "all";
  return options.net.onnx.empty() ? "^net/.*/(forward|backward|total)/" : "^net/.*/(forward|backward|total|inference)/";
}

}  // namespace lamina::bench
