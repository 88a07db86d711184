// What a row or a result is of.

#include "row_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "bench/io/row_name.h"
#include "networks.h"

namespace lamina::bench {
namespace {

/// What products are made of: the element type, or the math that stands in for f32's own.
std::string_view type_text(const Config& c, const PlanningSettings& settings) {
  return settings.plan.choice.math == Math::strict ? to_string(c.dtype) : to_string(settings.plan.choice.math);
}

void add_onnx_settings(RowKey& key, const OnnxSettings& settings) {
  std::string extents;
  for (const auto& [name, extent] : settings.extents)
    extents += fmt::format("{}{}={}", extents.empty() ? "" : ",", name, extent);
  if (!extents.empty()) key.differs.emplace_back("onnx_extents", extents);
  if (!settings.output.empty()) key.differs.emplace_back("onnx_output", settings.output);
}

}  // namespace

RowKey key_of(const char* what, const Config& c, std::string_view part, const PlanningSettings& settings) {
  RowKey key{.what = what,
             .network = c.network,
             .part = std::string(part),
             .backend = c.backend,
             .type = std::string(type_text(c, settings)),
             .layout = std::string(to_string(c.layout)),
             .batch = c.batch};
  if (settings.net.image != 0 && settings.net.image != network(c.network, settings.net).image)
    key.differs.emplace_back("image", fmt::format("{}", settings.net.image));
  if (!settings.backends.instruction_set.empty() && c.backend == "eigen")
    key.differs.emplace_back("instruction_set", settings.backends.instruction_set);
  if (settings.net.width_divisor != 1)
    key.differs.emplace_back("width_divisor", fmt::format("{}", settings.net.width_divisor));
  if (settings.net.ranks > 1) key.differs.emplace_back("ranks", std::to_string(settings.net.ranks));
  if (std::ranges::find(settings.net.onnx, c.network, network_name) != settings.net.onnx.end())
    add_onnx_settings(key, settings.net.onnx_settings);
  return key;
}

void add_limits(RowKey& key, const Choice& choice) {
  const Choice plain;
  if (choice.deterministic) key.differs.emplace_back("deterministic", "");
  if (choice.max_error != plain.max_error) key.differs.emplace_back("max_error", fmt::format("{:g}", choice.max_error));
  if (choice.workspace_limit != plain.workspace_limit)
    key.differs.emplace_back("workspace_limit", fmt::format("{}", choice.workspace_limit));
}

void add_variants(RowKey& key, const PlanningSettings& settings) {
  const nets::Protocol published = network(key.network, settings.net).protocol;
  const auto flag = [&](const char* name, const std::optional<bool>& set, bool as_published) {
    if (set && *set != as_published) key.differs.emplace_back(name, *set ? "1" : "0");
  };
  const bool trains = key.part != "inference";  // which keeps nothing, and has no gradients
  if (trains && settings.plan.keep == Keep::cheap) key.differs.emplace_back("recompute", "");
  if (!settings.plan.fuse) key.differs.emplace_back("unfused", "");
  flag("softmax", settings.net.softmax, published.softmax);
  if (trains) flag("input_gradient", settings.plan.input_gradient, published.input_gradient);
  if (trains) flag("accumulate", settings.plan.accumulate, published.accumulate);
  add_limits(key, settings.plan.choice);
  if (settings.plan.choice.measure) key.differs.emplace_back("measured", "");
}

RowKey plan_key(const char* what, const Config& c, std::string_view part, const PlanningSettings& settings) {
  RowKey key = key_of(what, c, part, settings);
  add_variants(key, settings);
  return key;
}

std::string to_string(const RowKey& key) { return row_name(fields_of(key)); }

nlohmann::ordered_json fields_of(const RowKey& key) {
  nlohmann::ordered_json fields = {{"what", key.what}, {"network", key.network}};
  if (!key.layer.empty()) fields["layer"] = key.layer;
  fields["part"] = key.part;
  fields["backend"] = key.backend;
  if (!key.algorithm.empty()) fields["algorithm"] = key.algorithm;
  fields["type"] = key.type;
  fields["layout"] = key.layout;
  fields["batch"] = key.batch;
  for (const auto& [what, value] : key.differs) fields["differs"][what] = value;
  return fields;
}

}  // namespace lamina::bench
