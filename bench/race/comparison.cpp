// What may be said of one row that several variants ran in turns.

#include "comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "measure/samples.h"

namespace lamina::bench {
namespace {

/// Quantile 0.995 of Student's t with 2, 3, ... degrees of freedom.
double t_quantile(std::size_t freedom) {
  constexpr std::array<double, 29> quantiles = {9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106,
                                                3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845, 2.831,
                                                2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750};
  return freedom - 2 < quantiles.size() ? quantiles[freedom - 2] : quantiles.back();
}

std::vector<std::string> parts_of(const std::string& row) {
  std::vector<std::string> parts(1);
  for (const char c : row)
    if (c == '/')
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}

/// layer/<net>/<node>/<pass>/<backend>/<algorithm>/...: the row of another algorithm has the same name but for that.
constexpr std::size_t algorithm_part = 5;
bool is_layer(const std::vector<std::string>& parts) { return parts.size() > algorithm_part && parts[0] == "layer"; }

std::string without_algorithm(std::vector<std::string> parts) {
  parts.erase(parts.begin() + algorithm_part);
  std::string text;
  for (const std::string& part : parts) text += part + "/";
  return text;
}

/// Last of the rounds that has a time, or else that has anything.
const Observation* last(const std::vector<std::optional<Observation>>* rounds) {
  const Observation* found = nullptr;
  if (rounds == nullptr) return nullptr;
  for (const std::optional<Observation>& round : *rounds)
    if (round && (found == nullptr || round->failure.empty() || !found->failure.empty())) found = &*round;
  return found;
}

Difference judge(const std::string& row, const std::vector<std::optional<Observation>>* first,
                 const std::vector<std::optional<Observation>>* other) {
  Difference d;
  d.row = row;
  const Observation* a = last(first);
  const Observation* b = last(other);
  if (a == nullptr || b == nullptr) {
    d.evidence = b == nullptr ? "no such row here" : "no such row in the first";
    return d;
  }
  d.memory_MiB = b->memory_MiB;
  d.first_memory_MiB = a->memory_MiB;
  d.algorithm = b->algorithm;
  d.first_algorithm = a->algorithm;
  if (!a->failure.empty() || !b->failure.empty()) {
    d.verdict = b->failure.empty()   ? Verdict::no_longer_fails
                : a->failure.empty() ? Verdict::fails
                                     : Verdict::fails_in_both;
    d.evidence = !b->failure.empty() ? b->failure : a->failure;
    return d;
  }
  std::vector<double> as, bs;
  for (std::size_t i = 0; i < std::min(first->size(), other->size()); ++i) {
    const auto &x = (*first)[i], &y = (*other)[i];
    if (!x || !y || !x->failure.empty() || !y->failure.empty() || x->seconds <= 0 || y->seconds <= 0) continue;
    as.push_back(x->seconds);
    bs.push_back(y->seconds);
  }
  if (as.empty()) return d;
  d.first_seconds = median(as);
  d.seconds = median(bs);
  d.ratio = d.seconds / d.first_seconds;
  const std::optional<LogRatio> ratio = log_ratio(as, bs);
  if (!ratio) return d;
  d.ratio = std::exp(ratio->mean);
  d.low = std::exp(ratio->mean - ratio->half_width);
  d.high = std::exp(ratio->mean + ratio->half_width);
  d.verdict = d.low > 1 && d.ratio > 1 + least_difference          ? Verdict::slower
              : d.high < 1 && d.ratio < 1 / (1 + least_difference) ? Verdict::faster
                                                                   : Verdict::equal;
  return d;
}

/// What the fastest of a layer's named algorithms takes in either variant.
struct Best {
  const Difference* first = nullptr;
  const Difference* other = nullptr;
};

Best best_of(const std::vector<Difference>& all, const std::string& layer) {
  Best best;
  for (const Difference& d : all) {
    const std::vector<std::string> parts = parts_of(d.row);
    if (!is_layer(parts) || parts[algorithm_part] == "default" || d.seconds <= 0) continue;
    if (without_algorithm(parts) != layer) continue;
    if (best.first == nullptr || d.first_seconds < best.first->first_seconds) best.first = &d;
    if (best.other == nullptr || d.seconds < best.other->seconds) best.other = &d;
  }
  return best;
}

void label_layer(Difference& d, const std::vector<std::string>& parts, const std::vector<Difference>& all) {
  const std::string& algorithm = parts[algorithm_part];
  d.label = "kernel";
  d.evidence = fmt::format("{:.3f} -> {:.3f} ms by {}", 1e3 * d.first_seconds, 1e3 * d.seconds,
                           algorithm == "default" && !d.algorithm.empty() ? d.algorithm : algorithm);
  if (algorithm != "default") return;
  const Best best = best_of(all, without_algorithm(parts));
  const auto name = [](const Difference* b) { return b == nullptr ? std::string() : parts_of(b->row)[algorithm_part]; };
  if (d.algorithm != d.first_algorithm)
    d.evidence += fmt::format(", picked {} instead of {}", d.algorithm, d.first_algorithm);
  if (best.other == nullptr) return;
  d.evidence += fmt::format("; the fastest: {:.3f} ms by {} -> {:.3f} ms by {}", 1e3 * best.first->first_seconds,
                            name(best.first), 1e3 * best.other->seconds, name(best.other));
  const bool best_held = best.other->seconds <= best.first->first_seconds * (1 + least_difference);
  if (best_held && d.algorithm != d.first_algorithm) d.label = "pick";
}

/// net/<net>/<part>/<backend>/<type>/...
constexpr std::size_t backend_part = 3;

/// Joins the parts from `first` on, without those that only a network's row has: a layer's plan knows nothing of them.
std::string demands_of(const std::vector<std::string>& parts, std::size_t first) {
  constexpr std::array of_networks = {"graph",   "recompute", "unfused",        "measured",
                                      "choices", "softmax",   "input_gradient", "accumulate"};
  std::string text;
  for (std::size_t i = first; i < parts.size(); ++i) {
    const std::string flag = parts[i].substr(0, parts[i].find(':'));
    if (std::find(of_networks.begin(), of_networks.end(), flag) == of_networks.end()) text += parts[i] + "/";
  }
  return text;
}

/// Whether the layer's pass, with this backend, type, layout and batch, is part of what the network's row times.
bool is_within(const std::vector<std::string>& layer, const std::vector<std::string>& net) {
  if (net.size() <= backend_part || layer[1] != net[1] || layer[algorithm_part - 1] != net[backend_part]) return false;
  if (demands_of(layer, algorithm_part + 1) != demands_of(net, backend_part + 1)) return false;
  const std::string &part = net[2], &pass = layer[3];
  return part == "total" || (part == "backward") == pass.starts_with("backward");
}

/// Rows of the layers that a network's row consists of: where a layer has a default row, which is what the network
/// takes, none of its named algorithms.
std::vector<const Difference*> layers_of(const std::vector<std::string>& net, const std::vector<Difference>& all) {
  std::map<std::string, const Difference*> defaults;
  std::vector<std::pair<std::string, const Difference*>> named;
  for (const Difference& each : all) {
    const std::vector<std::string> parts = parts_of(each.row);
    if (!is_layer(parts) || !is_within(parts, net)) continue;
    if (parts[algorithm_part] == "default")
      defaults[without_algorithm(parts)] = &each;
    else
      named.emplace_back(without_algorithm(parts), &each);
  }
  std::vector<const Difference*> rows;
  for (const auto& [layer, row] : defaults) rows.push_back(row);
  for (const auto& [layer, row] : named)
    if (!defaults.contains(layer)) rows.push_back(row);
  return rows;
}

/// A network's slower layers, by what they cost it, each with its own label.
void label_network(Difference& d, const std::vector<std::string>& parts, const std::vector<Difference>& all) {
  d.label = "kernel";
  d.evidence = fmt::format("{:.3f} -> {:.3f} ms", 1e3 * d.first_seconds, 1e3 * d.seconds);
  std::vector<const Difference*> slower = layers_of(parts, all);
  if (slower.empty()) {
    d.evidence += "; no row of its layers ran: let the filter pick layer/ rows too";
    return;
  }
  const std::size_t ran = slower.size();
  std::erase_if(slower, [](const Difference* row) { return row->verdict != Verdict::slower; });
  if (slower.empty()) {
    d.evidence += fmt::format("; none of {} rows of its layers got slower", ran);
    return;
  }
  d.label = "layers";
  std::sort(slower.begin(), slower.end(), [](const Difference* a, const Difference* b) {
    return a->seconds - a->first_seconds > b->seconds - b->first_seconds;
  });
  for (std::size_t i = 0; i < std::min<std::size_t>(slower.size(), 3); ++i)
    d.evidence += fmt::format("{} {} (+{:.3f} ms, {})", i == 0 ? ";" : ",", slower[i]->row,
                              1e3 * (slower[i]->seconds - slower[i]->first_seconds), slower[i]->label);
}

void label(Difference& d, const std::vector<Difference>& all) {
  const std::vector<std::string> parts = parts_of(d.row);
  if (d.verdict == Verdict::fails) {
    d.label = d.evidence.starts_with("OutOfMemory") ? "memory" : "";
    return;
  }
  if (d.verdict == Verdict::slower) {
    if (parts[0] == "setup") {
      d.label = "first call";
      d.evidence = fmt::format("{:.3f} -> {:.3f} ms", 1e3 * d.first_seconds, 1e3 * d.seconds);
    } else if (is_layer(parts)) {
      label_layer(d, parts, all);
    } else {
      label_network(d, parts, all);
    }
  }
  if (d.memory_MiB > 1.01 * d.first_memory_MiB && d.first_memory_MiB > 0) {
    d.label += d.label.empty() ? "memory" : ", memory";
    d.evidence +=
        fmt::format("{}{:.1f} -> {:.1f} MiB", d.evidence.empty() ? "" : "; ", d.first_memory_MiB, d.memory_MiB);
  }
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::equal: return "equal";
    case Verdict::slower: return "slower";
    case Verdict::faster: return "faster";
    case Verdict::undecided: return "undecided";
    case Verdict::fails: return "fails";
    case Verdict::no_longer_fails: return "no longer fails";
    case Verdict::fails_in_both: return "fails in both";
  }
  return "undecided";
}

std::optional<LogRatio> log_ratio(const std::vector<double>& a, const std::vector<double>& b) {
  const std::size_t count = std::min(a.size(), b.size());
  if (count < 3) return std::nullopt;
  std::vector<double> logs;
  for (std::size_t i = 0; i < count; ++i) logs.push_back(std::log(b[i] / a[i]));
  return LogRatio{mean(logs), t_quantile(count - 1) * deviation(logs) / std::sqrt(static_cast<double>(count))};
}

std::vector<Difference> compare(const Observations& first, const Observations& other) {
  std::set<std::string> rows;
  for (const Observations* each : {&first, &other})
    for (const auto& [row, rounds] : *each) rows.insert(row);
  const auto rounds_of = [](const Observations& all, const std::string& row) {
    const auto found = all.find(row);
    return found == all.end() ? nullptr : &found->second;
  };
  std::vector<Difference> differences;
  for (const std::string& row : rows) differences.push_back(judge(row, rounds_of(first, row), rounds_of(other, row)));
  for (const bool networks : {false, true})  // which tell the labels of their layers
    for (Difference& d : differences)
      if (d.row.starts_with("net/") == networks) label(d, differences);
  return differences;
}

}  // namespace lamina::bench
