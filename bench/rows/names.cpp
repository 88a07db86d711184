// The names of rows, and the filter that picks from them.

#include "names.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "lamina/error.h"
#include "lamina/nets.h"
#include "support/near.h"

namespace lamina::bench {
namespace {

/// What products are made of: the element type, or the math that stands in for f32's own.
std::string_view type_text(const Config& c, const RunOptions& options) {
  return options.plan.choice.math == Math::strict ? to_string(c.dtype) : to_string(options.plan.choice.math);
}

using Differs = std::vector<std::pair<std::string, std::string>>;

RowKey key_of(const char* what, const Config& c, std::string_view part, const RunOptions& options) {
  RowKey key{.what = what,
             .network = c.network,
             .part = std::string(part),
             .backend = c.backend,
             .type = std::string(type_text(c, options)),
             .layout = std::string(to_string(c.layout)),
             .batch = c.batch};
  if (options.net.image != 0 && options.net.image != nets::info(c.network).image)
    key.differs.emplace_back("image", fmt::format("{}", options.net.image));
  if (!options.backends.instruction_set.empty() && c.backend == "eigen")
    key.differs.emplace_back("instruction_set", options.backends.instruction_set);
  if (options.net.width_divisor != 1)
    key.differs.emplace_back("width_divisor", fmt::format("{}", options.net.width_divisor));
  return key;
}

/// What differs from the default in which algorithms may be taken.
void add_limits(Differs& differs, const Choice& choice) {
  const Choice plain;
  if (choice.deterministic) differs.emplace_back("deterministic", "");
  if (choice.max_error != plain.max_error) differs.emplace_back("max_error", fmt::format("{:g}", choice.max_error));
  if (choice.workspace_limit != plain.workspace_limit)
    differs.emplace_back("workspace_limit", fmt::format("{}", choice.workspace_limit));
}

/// What differs from the default in how a whole network is planned.
void add_variants(Differs& differs, const Config& c, const RunOptions& options) {
  const nets::Protocol& published = nets::info(c.network).protocol;
  const auto flag = [&](const char* name, const std::optional<bool>& set, bool as_published) {
    if (set && *set != as_published) differs.emplace_back(name, *set ? "1" : "0");
  };
  if (options.plan.keep == Keep::cheap) differs.emplace_back("recompute", "");
  if (!options.plan.fuse) differs.emplace_back("unfused", "");
  flag("softmax", options.net.softmax, published.softmax);
  flag("input_gradient", options.plan.input_gradient, published.input_gradient);
  flag("accumulate", options.plan.accumulate, published.accumulate);
  add_limits(differs, options.plan.choice);
  if (options.plan.choice.measure) differs.emplace_back("measured", "");
  if (!options.plan.choices.empty()) differs.emplace_back("choices", "");
}

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
  add_variants(key.differs, c, options);
  return key;
}

RowKey layer_key(const Config& c, std::string_view node, std::string_view pass, std::string_view algorithm,
                 const RunOptions& options) {
  RowKey key = key_of("layer", c, pass, options);
  key.layer = node;
  key.algorithm = algorithm;
  add_limits(key.differs, options.plan.choice);
  return key;
}

RowKey setup_key(const Config& c, std::string_view part, const RunOptions& options) {
  RowKey key = key_of("setup", c, part, options);
  add_variants(key.differs, c, options);
  return key;
}

std::string to_string(const RowKey& key) {
  std::string name = key.what + "/" + key.network;
  for (const std::string* part : {&key.layer, &key.part, &key.backend, &key.algorithm, &key.type, &key.layout})
    if (!part->empty()) name += "/" + *part;
  name += fmt::format("/batch:{}", key.batch);
  for (const auto& [what, value] : key.differs) name += "/" + what + (value.empty() ? "" : ":" + value);
  return name;
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
