// Rows: their options, the measurements that give their times, and the filter that picks rows by name.
// Runs the picked rows, and writes their file and table.

#include "rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <ranges>
#include <regex>
#include <set>
#include <sstream>
#include <utility>

#include "bench/context/build.h"
#include "bench/context/context.h"
#include "bench/io/interrupt.h"
#include "bench/machine/ranks.h"
#include "lamina/error.h"
#include "runner.h"

namespace lamina::bench {
namespace {

std::string nearest(const std::vector<std::string>& names, const std::string& filter) {
  std::string plain = filter;  // without the special characters of expressions
  std::erase_if(plain, [](char c) { return std::string_view("^$()[]*+?\\").find(c) != std::string_view::npos; });
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const std::string& name : names) ranked.emplace_back(edit_distance(plain, name, Match::part), "\n  " + name);
  std::ranges::sort(ranked);
  ranked.resize(std::min<std::size_t>(ranked.size(), 5));
  return fmt::format("{}", fmt::join(ranked | std::views::values, ""));
}

/// The rows of the options' networks that the filter picks.
std::vector<Row> picked(Session& session, const RunOptions& options) {
  std::string left_out;
  std::vector<Row> rows = all_rows(session, options, &left_out);
  if (!options.networks.empty() && !rows.empty() && !left_out.empty()) fmt::print(stderr, "{}\n", left_out);
  std::vector<std::string> names;
  for (const Row& row : rows) names.push_back(row.name);
  const std::vector<bool> chosen = pick(names, options.filter.value_or(default_filter(options)), left_out);
  std::vector<Row> kept;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (chosen[i]) kept.push_back(std::move(rows[i]));
  return kept;
}

/// Google Benchmark's reporter of this form, for a file.
std::unique_ptr<benchmark::BenchmarkReporter> text_reporter(Screen form) {
  if (form == Screen::console) return std::make_unique<benchmark::ConsoleReporter>(benchmark::ConsoleReporter::OO_None);
  BENCHMARK_DISABLE_DEPRECATED_WARNING
  return std::make_unique<benchmark::CSVReporter>();
  BENCHMARK_RESTORE_DEPRECATED_WARNING
}

void announce(const Progress& progress, const Runner& runner, Session& session, const RunOptions& options) {
  if (options.table && !session.backends.left_out().empty())
    fmt::print(stderr, "Left out on this machine: {}\n", fmt::join(session.backends.left_out(), "; "));
  const std::size_t groups = runner.outcomes().size();
  const bool counted = options.noise == 0 && options.min_time == 0;
  const double seconds = counted ? progress.left_seconds() : 0;
  fmt::print(stderr, "{} measurement{}, each after one pass to warm up{}\n", groups, groups == 1 ? "" : "s",
             seconds > 0 ? fmt::format(": about {} in all", seconds_text(seconds)) : "");
}

int measure_rows(Session& session, const RunOptions& options) {
  const std::filesystem::path& out = options.out;
  if (!out.empty()) check_writable(out), claim(out);
  if (!options.trace.empty()) check_writable(options.trace);

  std::vector<Row> rows = picked(session, options);
  std::string same = fmt::format("lamina {} of commit {}", build::lamina_version, build::commit);
  for (const Row& row : rows) same += ", " + row.name;
  check_same(*session.ranks, same);
  Progress progress(session.peaks, rows, options.passes);
  Runner runner(session, std::move(rows), options, progress);
  announce(progress, runner, session, options);

  // The documents of the file, and of standard output as JSON.
  std::array documents = {ResultFile(options.out_format == Screen::json ? out : ""), ResultFile("")};
  Json context = start_context(session.backends);
  add_peaks(context, session.peaks);
  for (ResultFile& document : documents) document.document["context"] = context;
  const auto by_library = text_reporter(options.out_format);
  std::ostringstream text;
  by_library->SetOutputStream(&text);
  const bool to_json = options.out_format == Screen::json;
  Report file = to_json ? file_report(runner.rows(), runner.outcomes(), documents[0])
                        : text_report(runner, *by_library, options.out_format == Screen::csv);
  Report screen = options.table ? table_report(runner)
                  : options.screen == Screen::json
                      ? file_report(runner.rows(), runner.outcomes(), documents[1])
                      : text_report(runner, *benchmark::CreateDefaultDisplayReporter(), options.screen == Screen::csv);
  runner.run(screen, file);
  clear_step();

  for (ResultFile& document : documents) end_context(document.document["context"], session.peaks);
  if (options.screen == Screen::json)
    std::cout << documents[1].document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  documents[0].save();
  if (!options.trace.empty() && session.ranks->rank() == 0) runner.trace().save(options.trace, session.backends);
  if (!out.empty() && !to_json) replace_file(out, text.str());
  if (options.table && !out.empty()) fmt::print(stderr, "Rows: {}\n", out.string());

  if (interrupted() != 0) return 128 + interrupted();
  if (runner.any_failed()) fmt::print(stderr, "lamina_bench: some rows failed; their text says why\n");
  if (!runner.any_measured()) fmt::print(stderr, "lamina_bench: no row could run\n");
  return runner.any_measured() && !runner.any_failed() ? 0 : 1;
}

/// Throws UsageError for options that several ranks do not support. Sets the number of threads of each rank.
void settle_ranks(RunOptions& options, const Communicator& ranks) {
  const std::pair<const char*, bool> of_one[] = {{"--cuda_graph", options.plan.cuda_graph},
                                                 {"--noise", options.noise > 0},
                                                 {"--benchmark_min_time", options.min_time > 0},
                                                 {"--backend with several names", options.backends.names.size() > 1}};
  for (const auto& [flag, given] : of_one)
    if (given) throw UsageError(fmt::format("{} is for one process; leave it out, or start without mpirun", flag));
  if (options.backends.names.empty()) options.backends.names = {"eigen"};
  if (options.backends.threads == 0) options.backends.threads = ranks.threads();
  if (ranks.rank() != 0) options.out.clear();
}

int run_as_rank(const RunOptions& options, const MakeBackend& make, Communicator& ranks) {
  RunOptions readable = options;
  readable.net.ranks = ranks.size();
  if (ranks.size() > 1) settle_ranks(readable, ranks);
  const bool refused = options.net.onnx.size() > 1 && leave_out_refused(readable.net, options.configs.batches.front());
  Session session(readable, make);
  session.ranks = &ranks;
  if (readable.list)
    for (const Row& row : picked(session, readable)) fmt::print("{}\n", row.name);
  const int status = readable.list ? 0 : measure_rows(session, readable);
  return refused && status == 0 ? 1 : status;
}

}  // namespace

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

std::vector<Row> rows_of(Group group, const RunOptions& options,
                         const std::function<RowKey(std::string_view part)>& key) {
  const auto shared = std::make_shared<const Group>(std::move(group));
  std::vector<Row> rows;
  for (std::size_t part = 0; part < shared->parts.size(); ++part) {
    RowKey of_part = key(shared->parts[part]);
    const std::string name = row_name(of_part);
    std::string again = rerun_row(name, shared->config, options, passes_flag(options.passes));
    rows.push_back({name, shared, part, std::move(of_part), std::move(again)});
  }
  return rows;
}

std::vector<Row> all_rows(Session& session, const RunOptions& options, std::string* left_out) {
  std::vector<Network> all;
  for (const std::string& name : options.networks) all.push_back(network(name, options.net));
  const bool named = !all.empty();
  if (!named || !options.net.onnx.empty()) std::ranges::copy(networks(options.net), std::back_inserter(all));
  std::set<std::string> reasons;
  const auto leave_out = [&](const std::string& name, const ShapeError& error) {
    if (named) throw ShapeError(name + ": " + error.what());
    reasons.insert(fmt::format("{} ({})", name, error.what()));
  };
  const int largest = std::ranges::max(options.configs.batches);
  std::erase_if(all, [&](const Network& each) {
    if (options.net.image != 0 && options.net.image < each.smallest_image) {
      reasons.insert(fmt::format("{} ({} or more)", each.name, each.smallest_image));
      return true;
    }
    try {
      session.plans.graph({each.name, "", DType::f32, Layout::nchw, largest});
    } catch (const ShapeError& error) {
      leave_out(each.name, error);
      return true;
    }
    return false;
  });
  std::vector<Row> rows;
  const auto for_each_config = [&](auto&& make_rows) {
    for (const std::string& backend : session.backends.names())
      for (const Network& info : all)
        for (const DType dtype : options.configs.dtypes)
          for (const Layout layout : options.configs.layouts)
            for (const int batch : options.configs.batches) try {
                std::ranges::move(make_rows(session, options, {info.name, backend, dtype, layout, batch}),
                                  std::back_inserter(rows));
              } catch (const ShapeError& error) {
                leave_out(info.name, error);
              }
  };
  const bool alone = options.net.ranks == 1;
  for_each_config(net_rows);
  if (alone) for_each_config(layer_rows);
  if (left_out != nullptr && !reasons.empty())
    *left_out = fmt::format("Left out at this --image and --batch: {}", fmt::join(reasons, ", "));
  if (left_out != nullptr && !alone)
    left_out->append(left_out->empty() ? "" : "; ")
        .append("several ranks run rows net/.../forward, backward and total; start others without mpirun");
  return rows;
}

int run_rows(const RunOptions& options, const MakeBackend& make) {
  const std::vector<std::string>& backends = options.backends.names;
  return with_ranks(backends.size() == 1 ? backends[0] : "eigen",
                    [&](Communicator& ranks) { return run_as_rank(options, make, ranks); });
}

}  // namespace lamina::bench
