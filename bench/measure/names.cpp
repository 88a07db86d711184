// The names of rows, and the filter that picks from them.

#include "names.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <regex>

#include "lamina/error.h"

namespace lamina::bench {
namespace {

/// What products are made of: the element type, or the math that stands in for f32's own.
std::string_view type_text(const Case& c, const BenchOptions& options) {
  return options.choice.math == Math::strict ? to_string(c.dtype) : to_string(options.choice.math);
}

std::string tail(const Case& c, const BenchOptions& options) {
  std::string text = fmt::format("{}/{}/batch:{}", type_text(c, options), to_string(c.layout), c.batch);
  if (options.image != 0 && options.image != nets::info(c.network).image)
    text += fmt::format("/image:{}", options.image);
  if (!options.instruction_set.empty() && c.backend == "eigen")
    text += fmt::format("/instruction_set:{}", options.instruction_set);
  if (options.width_divisor != 1) text += fmt::format("/width_divisor:{}", options.width_divisor);
  return text;
}

std::string flag(const char* name, const std::optional<bool>& set, bool published) {
  return set && *set != published ? fmt::format("/{}:{}", name, int{*set}) : std::string();
}

/// What differs from the default in which algorithms may be taken.
std::string limits(const BenchOptions& options) {
  const Choice plain, &choice = options.choice;
  std::string text = choice.deterministic ? "/deterministic" : "";
  if (choice.max_error != plain.max_error) text += fmt::format("/max_error:{:g}", choice.max_error);
  if (choice.workspace_limit != plain.workspace_limit)
    text += fmt::format("/workspace_limit:{}", choice.workspace_limit);
  return text;
}

/// What differs from the default in how a whole network is planned.
std::string variants(const Case& c, const BenchOptions& options) {
  const nets::Protocol& published = nets::info(c.network).protocol;
  return std::string(options.keep == Keep::cheap ? "/recompute" : "") + (options.fuse ? "" : "/unfused") +
         flag("softmax", options.softmax, published.softmax) +
         flag("input_gradient", options.input_gradient, published.input_gradient) +
         flag("accumulate", options.accumulate, published.accumulate) + limits(options) +
         (options.choice.measure ? "/measured" : "") + (options.choices.empty() ? "" : "/choices");
}

/// Smallest number of characters to change, add or drop in `pattern` so that it occurs in `text`.
std::size_t distance_within(std::string_view pattern, std::string_view text) {
  std::vector<std::size_t> column(pattern.size() + 1);
  std::iota(column.begin(), column.end(), std::size_t{0});
  std::size_t best = pattern.size();
  for (const char c : text) {
    std::size_t diagonal = column[0];  // stays 0: the match may start anywhere
    for (std::size_t i = 1; i <= pattern.size(); ++i) {
      const std::size_t changed = diagonal + (pattern[i - 1] == c ? 0 : 1);
      diagonal = column[i];
      column[i] = std::min({changed, column[i] + 1, column[i - 1] + 1});
    }
    best = std::min(best, column.back());
  }
  return best;
}

std::string nearest(const std::vector<std::string>& names, const std::string& filter) {
  std::string plain = filter;  // without what only an expression means
  std::erase_if(plain, [](char c) { return std::string_view("^$()[]*+?\\").find(c) != std::string_view::npos; });
  std::vector<std::pair<std::size_t, const std::string*>> ranked;
  for (const std::string& name : names) ranked.emplace_back(distance_within(plain, name), &name);
  const std::size_t shown = std::min<std::size_t>(ranked.size(), 5);
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(shown), ranked.end(),
                    [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += "\n  " + *ranked[i].second;
  return text;
}

}  // namespace

nets::Protocol protocol_of(const Case& c, const BenchOptions& options) {
  nets::Protocol protocol = nets::info(c.network).protocol;
  if (options.softmax) protocol.softmax = *options.softmax;
  if (options.input_gradient) protocol.input_gradient = *options.input_gradient;
  if (options.accumulate) protocol.accumulate = *options.accumulate;
  return protocol;
}

std::string net_name(const Case& c, std::string_view part, const BenchOptions& options) {
  return fmt::format("net/{}/{}/{}/{}{}{}", c.network, part, c.backend, tail(c, options),
                     options.cuda_graph ? "/graph" : "", variants(c, options));
}

std::string layer_name(const Case& c, std::string_view node, std::string_view pass, std::string_view algorithm,
                       const BenchOptions& options) {
  return fmt::format("layer/{}/{}/{}/{}/{}/{}{}", c.network, node, pass, c.backend, algorithm, tail(c, options),
                     limits(options));
}

std::string setup_name(const Case& c, std::string_view part, const BenchOptions& options) {
  return fmt::format("setup/{}/{}/{}/{}{}", c.network, part, c.backend, tail(c, options), variants(c, options));
}

std::string too_small_for(const BenchOptions& options) {
  std::vector<std::string> texts;
  for (const nets::Info& info : nets::list())
    if (options.image != 0 && options.image < info.smallest_image)
      texts.push_back(fmt::format("{} ({})", info.name, info.smallest_image));
  if (texts.empty()) return {};
  return fmt::format("\n--image={} leaves out networks that need larger ones: {}", options.image,
                     fmt::join(texts, ", "));
}

std::vector<bool> pick(const std::vector<std::string>& names, const std::string& filter, const std::string& left_out) {
  std::vector<bool> picked(names.size());
  try {
    const std::regex expression(filter);
    for (std::size_t i = 0; i < names.size(); ++i) picked[i] = std::regex_search(names[i], expression);
  } catch (const std::regex_error& error) {
    throw UsageError(fmt::format("--benchmark_filter \"{}\" is no regular expression: {}", filter, error.what()));
  }
  if (std::find(picked.begin(), picked.end(), true) == picked.end())
    throw UsageError(fmt::format(
        "--benchmark_filter \"{}\" matches none of {} rows; the nearest are{}\n--benchmark_list_tests prints all{}",
        filter, names.size(), nearest(names, filter), left_out));
  return picked;
}

std::string default_filter(bool quick) {
  const char* networks = quick ? "resnet18|resnet50|alexnet"
                               : "alexnet|inception_v1|vgg16|vgg19|resnet18|resnet34|resnet50|resnet101|resnet152|"
                                 "resnet200";
  return fmt::format("^net/({})/(forward|backward|total)/", networks);
}

}  // namespace lamina::bench
