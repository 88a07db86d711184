#pragma once
// A simulated machine. The times of its processes and passes vary as on a real machine.

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/compare/comparison.h"

namespace lamina::bench::test {

/// The times of real passes, divided by the median of their row, on two quiet processor cores.
inline const std::vector<double>& noise() {
  static const std::vector<double> all = [] {
    std::vector<double> found;
    const nlohmann::json kept = nlohmann::json::parse(std::ifstream(LAMINA_RESULTS "/races/epyc_2_cores.json"));
    for (const nlohmann::json& row : kept["benchmarks"]) {
      if (row["variant"] != "eigen") continue;
      const auto ms = row["real_times"].get<std::vector<double>>();
      for (const double each : ms) found.push_back(each / median_interval(ms).middle);
    }
    return found;
  }();
  return all;
}

/// The number of comparisons, of 100, for which `holds` is true.
template <class Holds>
int of_100(const Holds& holds) {
  int found = 0;
  for (int i = 0; i < 100; ++i) found += holds() ? 1 : 0;
  return found;
}

/// The row with this name and, unless `first` is empty, with this first variant.
inline const ComparedRow& row_of(const Comparison& comparison, const std::string& name, const std::string& first = {}) {
  for (const ComparedRow& row : comparison.rows)
    if (row.name == name && (first.empty() || row.first == first)) return row;
  throw std::runtime_error("no row " + name);
}

/// The number of rows that are slower or faster.
inline std::size_t changed(const Comparison& comparison) {
  return comparison.count(Verdict::slower) + comparison.count(Verdict::faster);
}

/// A machine whose passes vary as real passes do. Its processes vary as much as medians of nine passes. A machine that
/// `stalls` sometimes runs at half its speed for several processes in a row. A real virtual machine behaved like this.
class Machine {
 public:
  explicit Machine(unsigned seed, bool stalls = false) : engine_(seed), stalls_(stalls) {}

  /// A process that runs four networks. The network resnet18 takes `resnet18` times as long as usual.
  RunFile networks(double resnet18 = 1) {
    const double process = next_process();
    RunFile file{"run.json", {}, {}};
    for (const std::string network : {"alexnet", "resnet18", "resnet50", "vgg16"})
      file.rows["net/" + network] = row(no_key, process * (network == "resnet18" ? 0.4 * resnet18 : 0.3));
    return file;
  }

  /// A ledger of five layers with two calls each. One forward call takes `slow_layer` times as long as the others.
  RunFile ledger(double slow_layer = 1) {
    const double process = next_process();
    RunFile file{"ledger.json", {}, {}};
    const auto add = [&](const std::string& layer, const std::string& part, double seconds) {
      nlohmann::ordered_json key = {{"what", "ledger"}, {"network", "resnet18"}, {"part", part}, {"backend", "eigen"},
                                    {"type", "f32"},    {"layout", "nchw"},      {"batch", 16}};
      if (!layer.empty()) key["layer"] = layer;
      file.rows["ledger/" + layer + "/" + part] = row(key, process * seconds);
    };
    for (int i = 0; i < 5; ++i) {
      add("conv" + std::to_string(i), "forward", 0.01 * (i == 3 ? slow_layer : 1));
      add("conv" + std::to_string(i), "backward_params", 0.02);
    }
    add("", "forward", 0.05 + 0.01 * (slow_layer - 1));
    add("", "backward", 0.1);
    return file;
  }

  /// Two variants that take turns on one network, one pass a round. The second takes `second` times as long. The state
  /// of the machine in a round is the same for both.
  std::vector<Variant> turns(std::size_t rounds, double second = 1) {
    RunRow row;
    row.key = {{"what", "net"}, {"network", "resnet18"}, {"part", "total"}, {"type", "f32"}};
    std::vector<Variant> both = {{"a", {{"net/resnet18", row}}}, {"b", {{"net/resnet18", row}}}};
    for (std::size_t round = 0; round < rounds; ++round) {
      const double process = next_process();
      for (Variant& variant : both) {
        RunRow& its = variant.rows.begin()->second;
        its.rounds.push_back(static_cast<std::int64_t>(round));
        its.seconds.push_back(process * any() * (variant.name == "b" ? second : 1));
      }
    }
    return both;
  }

 private:
  double any() { return noise()[std::uniform_int_distribution<std::size_t>(0, noise().size() - 1)(engine_)]; }

  double next_process() {
    // One process in ten begins a stall, which lasts for two processes on average.
    if (stalls_) stalled_ = std::bernoulli_distribution(stalled_ ? 0.5 : 0.1)(engine_);
    return median_interval(row(no_key, 1).seconds).middle * (stalled_ ? 2.1 : 1);
  }

  /// A row of nine passes of about `seconds` each.
  RunRow row(const nlohmann::ordered_json& key, double seconds) {
    RunRow row;
    row.key = key;
    for (int i = 0; i < 9; ++i) row.seconds.push_back(seconds * any());
    return row;
  }

  const nlohmann::ordered_json no_key = nlohmann::ordered_json::object();
  std::mt19937 engine_;
  bool stalls_, stalled_ = false;
};

struct Sides {
  Processes first, second;
};

/// `count` processes of each side, in turns: A B, B A, ...
template <class First, class Second>
Sides in_turns(std::size_t count, First&& first, Second&& second) {
  Sides sides;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 2 == 0) sides.first.push_back(first());
    sides.second.push_back(second());
    if (i % 2 == 1) sides.first.push_back(first());
  }
  return sides;
}

inline Sides networks(Machine& machine, std::size_t count, double resnet18 = 1) {
  return in_turns(
      count, [&] { return machine.networks(); }, [&] { return machine.networks(resnet18); });
}

}  // namespace lamina::bench::test
