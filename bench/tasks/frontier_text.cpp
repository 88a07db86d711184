// The frontiers as human-readable text. Also as CSV and as entries of a result file, both with all tried algorithms.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "bench/context/context.h"
#include "bench/io/interrupt.h"
#include "frontier.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

void set_finite(Json& json, const char* name, double value) {
  if (std::isfinite(value)) json[name] = value;
}

Json candidate_json(const LayerTuning& tuning, std::size_t i, const LayerTuning::Picked& picked, bool stays) {
  const Candidate& one = tuning.candidates[i];
  Json json = {{"algorithm", one.algorithm}, {"by_rule", one.by_rule}};
  if (!one.ran()) {
    json["failure"] = one.refused;
    json["unsupported"] = one.unsupported;
    return json;
  }
  const Measurement& its = one.measured;
  const Interval seconds = median_interval(its.seconds);
  json["seconds"] = seconds.middle;
  json["low"] = seconds.low;
  json["high"] = seconds.high;
  json["samples"] = its.seconds;
  json["finished"] = its.finished;
  json["of_one_image"] = its.of_one_image;
  json["workspace_bytes"] = its.workspace_bytes;
  json["math"] = to_string(its.math);
  set_finite(json, "error", its.error);
  set_finite(json, "guaranteed_error", its.guaranteed_error);
  json["deterministic"] = its.deterministic;
  json["same_bits"] = its.same_bits;
  json["runs_compared"] = its.runs_compared;
  json["on_frontier"] = stays;
  json["picked"] = picked.best == i;
  json["tied"] = std::find(picked.ties.begin(), picked.ties.end(), i) != picked.ties.end();
  return json;
}

/// A frontier as an entry of a result file, with all tried algorithms.
Json frontier_json(const RowKey& key, const Frontier& frontier, const FastestNet& net, const Choice& limits) {
  Json json = {{"key", key}, {"complete", frontier.complete()}, {"lines_in_all", frontier.lines_in_all}};
  json["limits"]["deterministic"] = limits.deterministic;
  json["limits"]["workspace_bytes"] = limits.workspace_limit;
  set_finite(json["limits"], "max_error", limits.max_error);
  json["lines"] = Json::array();
  for (std::size_t l = 0; l < frontier.lines.size(); ++l) {
    const FrontierLine& line = frontier.lines[l];
    const std::vector<bool> stays = not_beaten(line.tuning.candidates);
    Json algorithms = Json::array();
    for (std::size_t i = 0; i < line.tuning.candidates.size(); ++i)
      algorithms.push_back(candidate_json(line.tuning, i, net.picks[l], stays[i]));
    json["lines"].push_back({{"node", line.node},
                             {"layers", line.layers},
                             {"op", line.op},
                             {"pass", to_string(line.pass())},
                             {"flops", line.work.flops},
                             {"bytes", line.work.bytes},
                             {"reason", line.reason},
                             {"algorithms", std::move(algorithms)}});
  }
  if (!frontier.complete()) return json;
  json["fastest"] = {{"forward_seconds", net.forward_seconds}, {"backward_seconds", net.backward_seconds}};
  if (net.by_rule_seconds > 0) json["fastest"]["by_rule_seconds"] = net.by_rule_seconds;
  json["fastest"]["missing"] = net.missing;
  return json;
}

std::string milliseconds(double seconds) { return fmt::format("{:.3f}", 1e3 * seconds); }

std::string error_text(double error) { return std::isfinite(error) ? fmt::format("{:.1e}", error) : "not known"; }

/// The remark of an algorithm: whether it is picked, tied, beaten, or beyond the limits, and further facts.
std::string remark(const FrontierLine& line, std::size_t i, const LayerTuning::Picked& picked, const Choice& limits,
                   bool stays, bool with_reason) {
  const LayerTuning& tuning = line.tuning;
  const Candidate& one = tuning.candidates[i];
  if (!one.ran()) return (one.unsupported ? "not supported: " : "failed: ") + one.refused;
  std::vector<std::string> parts;
  const bool alone = tuning.candidates.size() == 1;
  const bool is_tied = std::find(picked.ties.begin(), picked.ties.end(), i) != picked.ties.end();
  if (alone) parts.emplace_back("the only algorithm");
  if (picked.best == i && !alone) parts.emplace_back(picked.ties.empty() ? "picked" : "picked, tied");
  if (picked.best && is_tied) parts.push_back("tied with " + tuning.candidates[*picked.best].algorithm);
  if (!stays) parts.emplace_back("beaten");
  if (!within(one.measured, limits)) parts.emplace_back("beyond the limits");
  if (one.by_rule && !alone) parts.push_back("by " + (with_reason && !line.reason.empty() ? line.reason : "rule"));
  if (!one.measured.finished) parts.emplace_back("slow");
  if (!one.measured.same_bits) parts.emplace_back("not bit-identical");
  if (!one.measured.deterministic) parts.emplace_back("declared nondeterministic");
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<std::string> cells(const FrontierLine& line, const Candidate& one) {
  std::vector<std::string> text = {line.node, fmt::format("{}", line.layers), std::string(to_string(line.pass())),
                                   one.algorithm};
  const Measurement& its = one.measured;
  if (!one.ran()) return text.resize(13), text;
  const Interval seconds = median_interval(its.seconds);
  const auto yes = [](bool value) { return std::string(value ? "yes" : "no"); };
  const std::string interval = its.of_one_image ? "of one image"
                               : its.seconds.size() == 1
                                   ? "one sample"
                                   : milliseconds(seconds.low) + " .. " + milliseconds(seconds.high);
  const std::string same =
      its.runs_compared > 1 ? fmt::format("{} in {}", yes(its.same_bits), its.runs_compared) : "not compared";
  const std::string measured[] = {milliseconds(seconds.middle),
                                  interval,
                                  fmt::format("{:.1f}", 1e-9 * line.work.flops / seconds.middle),
                                  fmt::format("{:.2f}", static_cast<double>(its.workspace_bytes) / mebibyte),
                                  error_text(its.error),
                                  error_text(its.guaranteed_error),
                                  yes(its.deterministic),
                                  same,
                                  std::string(to_string(its.math))};
  text.insert(text.end(), std::begin(measured), std::end(measured));
  return text;
}

/// The columns of a table. `of_layers`: for layers on the command line, not for networks.
std::vector<TextTable::Column> columns(bool of_layers) {
  std::vector<TextTable::Column> all = {"layer",         ">layers",   "pass",           "algorithm", ">ms",
                                        "interval",      ">GFLOP/s",  ">workspace MiB", ">error",    ">guaranteed",
                                        "deterministic", "same bits", "math",           "remark"};
  if (!of_layers) return all;
  all.erase(all.begin());
  all.front() = "backend";
  return all;
}

/// Adds the rows of one frontier: the algorithms that no other beats or, with `everything`, all algorithms.
void add_rows(TextTables& tables, const Frontier& frontier, const FastestNet& net, const Choice& limits,
              bool everything, bool of_layer) {
  const Config& c = frontier.config;
  for (std::size_t l = 0; l < frontier.lines.size(); ++l) {
    const FrontierLine& line = frontier.lines[l];
    const std::vector<Candidate>& all = line.tuning.candidates;
    const std::vector<bool> stays = not_beaten(all);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!everything && !stays[i]) continue;
      std::vector<std::string> row = cells(line, all[i]);
      row.push_back(remark(line, i, net.picks[l], limits, stays[i], of_layer));
      std::vector<std::string> of = {c.network, c.backend, fmt::format("{}", c.batch)};
      if (of_layer) {
        of.resize(1);
        row.erase(row.begin());
        row.front() = c.backend;
      }
      tables.add(of, std::move(row));
    }
  }
}

/// A line that says how many algorithms the table leaves out.
std::string left_out(const Frontier& frontier) {
  std::ptrdiff_t beaten = 0, refused = 0;
  for (const FrontierLine& line : frontier.lines) {
    const std::vector<Candidate>& all = line.tuning.candidates;
    const std::ptrdiff_t ran = std::ranges::count_if(all, &Candidate::ran);
    beaten += ran - std::ranges::count(not_beaten(all), true);
    refused += std::ssize(all) - ran;
  }
  return fmt::format("Not shown: {} beaten by another, {} that could not run. --format=csv has why.\n", beaten,
                     refused);
}

std::string limits_text(const Choice& limits) {
  std::string text = fmt::format("a workspace of {} a call", bytes_text(static_cast<double>(limits.workspace_limit)));
  if (std::isfinite(limits.max_error)) text += fmt::format(", a measured error of {:g}", limits.max_error);
  if (limits.deterministic) text += ", the same bits on every run";
  return text;
}

std::string whole_text(Session& session, const Frontier& frontier, int passes, const FastestNet& net,
                       const std::map<std::string, Choice>& choices) {
  if (net.as_by_rule) return "That is what the backend takes by rule.\n";
  const int samples = std::max(3, passes_on(frontier.config.backend, passes));
  try {
    const WholeNet whole = time_whole(session, frontier.config, choices, samples);
    if (whole.samples == 0) return "The whole network was not timed with these choices: interrupted.\n";
    const bool is_tied = whole.ratio.low <= 1 && whole.ratio.high >= 1;
    const auto text = [](const Interval& seconds) {
      return fmt::format("{:.3f} ms ({:.3f} .. {:.3f})", 1e3 * seconds.middle, 1e3 * seconds.low, 1e3 * seconds.high);
    };
    return fmt::format("The whole network, {} passes of each in turns: {} with these choices, {} by rule: {}.\n",
                       whole.samples, text(whole.picked), text(whole.by_rule),
                       is_tied ? "equal within noise" : fmt::format("{:.3f} times", whole.ratio.middle));
  } catch (const Error& error) {
    return fmt::format("The whole network could not be timed with these choices: {}\n", error.what());
  }
}

/// The text that says where measuring was interrupted.
std::string cut_text(const Frontier& frontier) {
  return fmt::format("Interrupted at {}: {} of {} lines are measured", frontier.cut_layer, frontier.lines.size(),
                     frontier.lines_in_all);
}

std::string summary(const Frontier& frontier, const FastestNet& net, const Choice& limits) {
  if (!frontier.complete()) return cut_text(frontier) + ", so there is no fastest network.\n";
  if (!net.missing.empty())
    return fmt::format("No network within {}: no algorithm keeps to this for {}.\n", limits_text(limits),
                       fmt::join(net.missing, "; "));
  double layers = 0;
  for (const FrontierLine& line : frontier.lines)
    if (line.pass() == Pass::forward) layers += line.layers;
  std::string text = fmt::format(
      "Fastest within {}: the {:.0f} convolutions and fully connected layers take {} ms forward and {} ms backward",
      limits_text(limits), layers, milliseconds(net.forward_seconds), milliseconds(net.backward_seconds));
  if (net.by_rule_seconds > 0)
    text += fmt::format(", {} in all; by rule {}", milliseconds(net.forward_seconds + net.backward_seconds),
                        milliseconds(net.by_rule_seconds));
  return text + ".\n";
}

/// Prints the lines about a whole network: as text below its table, with CSV on standard error.
void finish_network(Session& session, const FrontierOptions& options, const Frontier& frontier, const FastestNet& net,
                    const Choice& limits, const Print& print) {
  const bool text = options.format == Format::text;
  const bool whole = frontier.complete() && net.missing.empty();
  const auto say = [&](const std::string& what) { text ? print(what) : fmt::print(stderr, "{}", what); };
  if (text) print(left_out(frontier));
  if (text || !whole) say(summary(frontier, net, limits));
  const auto choices = whole ? choices_of(session, frontier, net) : std::map<std::string, Choice>();
  const std::string why = whole ? why_not_planned(session, frontier.config, choices) : "";
  if (!why.empty())
    say(fmt::format("But {} cannot be planned with these limits: {}.\n", to_string(frontier.config), why));
  if (text && whole && why.empty()) print(whole_text(session, frontier, options.passes, net, choices));
}

}  // namespace

bool frontiers(Session& session, const FrontierOptions& options, const Print& print) {
  const bool text = options.format == Format::text, of_layers = !options.net.layers.empty();
  Choice limits = options.plan.options.choice;
  limits.max_error = options.max_measured_error;
  ResultFile results(options.out);
  begin(results, session.backends, "frontiers");
  std::vector<TextTable::Column> of = {"network", "backend", ">batch"};
  if (of_layers) of = {"layer"};
  TextTables tables(options.format, of, columns(of_layers));
  TuningRules rules;
  if (options.passes > 0) rules.race.rounds = static_cast<std::size_t>(options.passes);
  const std::vector<Config> all = configs(session.backends, options.configs, options.net, options.networks);
  for (const Config& c : all) session.plans.graph(c);  // fails for an unreadable network before measuring
  double seconds = 0;
  for (const Config& c : all) seconds += guessed_seconds(session, c, rules);
  if (seconds > 0)
    fmt::print(stderr, "Up to {} samples of each algorithm: at least about {}, longer if some algorithms are slow\n",
               rules.race.rounds, seconds_text(seconds));
  bool any_ran = false;
  for (const Config& c : all) {
    Frontier frontier{.config = c, .lines = {}};
    if (interrupted() == 0) frontier = make_frontier(session, c, rules, show_step);
    const bool stopped = interrupted() != 0;
    clear_step();
    const bool measured = !stopped || !frontier.lines.empty();
    if (!measured) fmt::print(stderr, "Interrupted: {} is not measured\n", to_string(c));
    if (!measured && tables.empty()) continue;
    for (const FrontierLine& line : frontier.lines)
      any_ran |= std::ranges::any_of(line.tuning.candidates, &Candidate::ran);
    const FastestNet net = fastest_net(frontier, limits);
    if (measured && results.wanted()) {
      RowKey key = key_of("frontier", c, mode_name(options.plan.options.mode), options);
      if (std::isfinite(limits.max_error)) key["differs"]["max_measured_error"] = fmt::format("{:g}", limits.max_error);
      if (options.backends.has_memory_limit())
        key["differs"]["memory_limit"] = fmt::format("{}", options.backends.memory_limit);
      std::vector<std::string> more = passes_flag(options.passes);
      if (std::isfinite(limits.max_error)) more.push_back(fmt::format("--max_measured_error={:g}", limits.max_error));
      results.add("frontiers", frontier_json(key, frontier, net, limits), rerun("frontier", c, options, more));
    }
    add_rows(tables, frontier, net, limits, !text || of_layers, of_layers);
    if (of_layers && !stopped && &c != &all.back() && (&c)[1].network == c.network)
      continue;  // the table is printed when it has the next backend, too
    print(tables.take(fmt::format("{}, {}, {} math, medians of up to {} samples", of_layers ? c.network : to_string(c),
                                  to_string(c.dtype), to_string(limits.math), rules.race.rounds),
                      of_layers ? "" : "\n"));
    if (!of_layers) finish_network(session, options, frontier, net, limits, print);
    if (of_layers && !frontier.complete()) fmt::print(stderr, "{}\n", cut_text(frontier));
  }
  finish(results, session.peaks);
  return any_ran;
}

}  // namespace lamina::bench
