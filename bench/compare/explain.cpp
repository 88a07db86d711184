// What explains a slowdown: another algorithm was picked, the kernel itself, more memory, or layers.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "comparison.h"

namespace lamina::bench {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<const ComparedRow*>;

constexpr double more_memory = 1.01;
constexpr double as_fast = 1.02;  // two times are alike up to this ratio

std::string field(const ComparedRow& row, const char* name) { return row.key.value(name, std::string()); }

bool is_default(const ComparedRow& row) {
  const std::string algorithm = field(row, "algorithm");
  return algorithm.empty() || algorithm == "default";
}

/// Whether both rows are of one layer's pass, by any algorithm.
bool same_layer(const ComparedRow& a, const ComparedRow& b) {
  Json one = a.key, other = b.key;
  one.erase("algorithm");
  other.erase("algorithm");
  return one == other;
}

/// The network, where it runs and how, without settings that rows of layers do not have.
Json setting(const Json& key) {
  Json found = key.value("differs", Json::object());
  for (const char* of_networks :
       {"graph", "recompute", "unfused", "measured", "softmax", "input_gradient", "accumulate"})
    found.erase(of_networks);
  for (const char* name : {"network", "backend", "type", "layout", "batch"}) found[name] = key.value(name, Json());
  return found;
}

void explain_layer(ComparedRow& row, const Rows& layers) {
  const std::string by = row.algorithm.empty() ? field(row, "algorithm") : row.algorithm;
  if (!by.empty()) row.reason += " by " + by;
  if (field(row, "algorithm") != "default") return;
  const bool other_pick = row.algorithm != row.first_algorithm;
  if (other_pick) row.reason += fmt::format(", picked {} instead of {}", row.algorithm, row.first_algorithm);
  Rows named;
  std::ranges::copy_if(layers, std::back_inserter(named), [&](const ComparedRow* other) {
    return !is_default(*other) && other->seconds > 0 && same_layer(*other, row);
  });
  if (named.empty()) return;
  const ComparedRow* before = *std::ranges::min_element(named, {}, &ComparedRow::first_seconds);
  const ComparedRow* now = *std::ranges::min_element(named, {}, &ComparedRow::seconds);
  row.reason += fmt::format("; the fastest: {:.3f} ms by {} -> {:.3f} ms by {}", 1e3 * before->first_seconds,
                            field(*before, "algorithm"), 1e3 * now->seconds, field(*now, "algorithm"));
  if (other_pick && now->seconds <= as_fast * before->first_seconds) row.regression = "pick";
}

/// Explains a row of a whole network. Where a layer has a row of what the pass runs, that row alone counts.
void explain_whole(ComparedRow& row, const Rows& layers) {
  const std::string part = field(row, "part");
  Rows ran;
  std::ranges::copy_if(layers, std::back_inserter(ran), [&](const ComparedRow* layer) {
    const bool backward = field(*layer, "part").starts_with("backward");
    const bool is_ledger = field(row, "what") == "ledger";
    if (is_ledger != (field(*layer, "what") == "ledger") || setting(layer->key) != setting(row.key)) return false;
    if (part != "total" && (part == "backward") != backward) return false;
    return is_default(*layer) || std::ranges::none_of(layers, [&](const ComparedRow* other) {
             return is_default(*other) && same_layer(*other, *layer);
           });
  });
  if (ran.empty()) {
    row.reason += "; no row of its layers ran: let the filter pick layer/ rows too";
    return;
  }
  const std::size_t all = ran.size();
  const auto added = [](const ComparedRow* layer) { return layer->seconds - layer->first_seconds; };
  std::erase_if(ran, [](const ComparedRow* layer) { return layer->verdict != Verdict::slower; });
  std::ranges::sort(ran, std::ranges::greater(), added);
  if (ran.empty()) {
    row.reason += fmt::format("; none of {} rows of its layers got slower", all);
    return;
  }
  row.regression = "layers";
  for (std::size_t i = 0; i < std::min<std::size_t>(ran.size(), 3); ++i)
    row.reason += fmt::format("{} {} {} (+{:.3f} ms, {})", i == 0 ? ";" : ",", field(*ran[i], "layer"),
                              field(*ran[i], "part"), 1e3 * added(ran[i]), ran[i]->regression);
}

void explain(ComparedRow& row, const Rows& layers) {
  if (row.verdict == Verdict::fails && row.failure_kind == "out_of_memory") row.regression = "memory";
  if (row.verdict == Verdict::fails) return;
  if (row.verdict == Verdict::slower) {
    row.reason += fmt::format("{}{:.3f} -> {:.3f} ms", row.reason.empty() ? "" : "; ", 1e3 * row.first_seconds,
                              1e3 * row.seconds);
    row.regression = row.is_layer() || row.is_whole() ? "kernel" : "";
    if (row.is_layer()) explain_layer(row, layers);
    if (row.is_whole()) explain_whole(row, layers);
  }
  if (row.first_MiB > 0 && row.MiB > more_memory * row.first_MiB) {
    row.regression += (row.regression.empty() ? "" : ", ") + std::string("memory");
    row.reason += (row.reason.empty() ? "" : "; ") + fmt::format("{:.1f} -> {:.1f} MiB", row.first_MiB, row.MiB);
  }
}

}  // namespace

bool ComparedRow::is_whole() const {
  const std::string what = key.value("what", std::string());
  return !is_layer() && (what == "net" || what == "ledger");
}

void explain(std::vector<ComparedRow>& rows) {
  Rows layers;
  for (const ComparedRow& row : rows)
    if (row.is_layer()) layers.push_back(&row);
  for (const bool whole : {false, true})  // a whole network names the regressions of its layers
    for (ComparedRow& row : rows)
      if (row.is_whole() == whole) explain(row, layers);
}

}  // namespace lamina::bench
