// The program from its arguments to its exit status.

#include "program.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "commands.h"
#include "lamina/error.h"
#include "lib/support/near.h"

namespace lamina::bench {
namespace {

constexpr const char* about =
    "Times the passes of convolutional networks, per backend, as rows of Google Benchmark.\n"
    "Without a subcommand it is `run`; without a filter that is forward, backward and total of ten networks.";
constexpr const char* exits =
    "`lamina_bench SUBCOMMAND --help` has the flags.\n"
    "Exit status: 0, or 1 (a row failed, or a file could not be written), 2 (wrong use), 130 or 143 (interrupted);\n"
    "of compare also 3 (slower than the limit).";

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  return flags;
}

/// Throws UsageError for what the subcommand does not take; the message names those that do.
void check_extras(const CLI::App& app, const CLI::App& subcommand) {
  if (subcommand.remaining().empty()) return;
  const std::string word = subcommand.remaining().front(), flag = word.substr(0, word.find('='));
  if (!word.starts_with('-') && subcommand.get_option_no_throw("--benchmark_filter") != nullptr)
    throw UsageError(
        fmt::format("{0} takes no name \"{1}\"; give --benchmark_filter='^net/{1}/'", subcommand.get_name(), word));
  std::vector<std::string> others;
  for (const CLI::App* other : app.get_subcommands({}))
    if (const auto flags = flags_of(*other); std::find(flags.begin(), flags.end(), flag) != flags.end())
      others.push_back(other->get_name());
  throw UsageError(fmt::format(
      "{}: unknown option {} ({}); see lamina_bench {} --help", subcommand.get_name(), flag,
      others.empty() ? near_names(flag, flags_of(subcommand)) : fmt::format("accepted by: {}", fmt::join(others, ", ")),
      subcommand.get_name()));
}

/// The words in the order that CLI11 wants, last first; `run` where no subcommand is named. Throws UsageError for an
/// unknown one.
std::vector<std::string> words_of(int argc, const char* const* argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool help = !words.empty() && (words[0] == "--help" || words[0] == "-h");
  if (words.empty() || (words[0].starts_with('-') && !help)) words.insert(words.begin(), "run");
  std::vector<std::string> known;
  for (const Command& command : commands()) known.emplace_back(command.name);
  if (!help && std::find(known.begin(), known.end(), words[0]) == known.end())
    throw UsageError(fmt::format("no subcommand \"{}\": {}; see --help", words[0], near_names(words[0], known)));
  std::reverse(words.begin(), words.end());
  return words;
}

/// What the subcommand that the user named does with its options.
std::function<int()> parse(CLI::App& app, int argc, const char* const* argv, const MakeBackend& make) {
  std::function<int()> chosen;
  app.footer(exits);
  app.require_subcommand(1);
  for (const Command& command : commands()) {
    CLI::App& subcommand = *app.add_subcommand(command.name, command.about);
    subcommand.allow_extras()->callback([&app, &subcommand, &chosen, &make, action = command.add(subcommand)] {
      check_extras(app, subcommand);
      chosen = [&make, action] { return action(make); };
    });
  }
  app.parse(words_of(argc, argv));
  return chosen;
}

}  // namespace

int run_program(int argc, char** argv, const MakeBackend& make) {
  CLI::App app{about, "lamina_bench"};
  try {
    const std::function<int()> chosen = parse(app, argc, argv, make);
    int only_the_name = 1;
    benchmark::Initialize(&only_the_name, argv);
    return chosen();
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "lamina_bench: {}; see --help\n", error.what());
    return 2;
  } catch (const UsageError& error) {
    fmt::print(stderr, "lamina_bench: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "lamina_bench: {}\n", error.what());
    return 1;
  }
}

}  // namespace lamina::bench
