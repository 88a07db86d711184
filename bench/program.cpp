// The program, from its arguments to its exit status.

#include "program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "bench/context/build.h"
#include "bench/machine/ranks.h"
#include "bench/measure/session.h"
#include "commands.h"
#include "lamina/error.h"

namespace lamina::bench {

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  return flags;
}

namespace {

constexpr const char* about =
    "Times the passes of convolutional networks, per backend, as rows of Google Benchmark.\n"
    "Without a subcommand it is `run`; without a filter that is forward, backward and total of ten networks.";
constexpr const char* exits =
    "`lamina_bench SUBCOMMAND --help` has the flags.\n"
    "Exit status: 0, or 1 (a row failed, or a file could not be written), 2 (wrong use), 130 or 143 (interrupted);\n"
    "of compare also 3 (slower than the limit), 4 (too few samples to say).";

/// Throws UsageError for flags that the subcommand does not take. The message names the subcommands that take the flag.
/// For `run`, flags of Google Benchmark are not checked here, because `run` passes them on.
void check_extras(const CLI::App& app, const CLI::App& subcommand) {
  const bool has_rows = subcommand.get_option_no_throw("--benchmark_filter") != nullptr;
  const std::vector<std::string> words = subcommand.remaining();
  const auto is_unknown = [&](const std::string& word) {
    return !has_rows || !(word.starts_with("--benchmark_") || word.starts_with("--v="));
  };
  const auto unknown = std::ranges::find_if(words, is_unknown);
  if (unknown == words.end()) return;
  const std::string flag = unknown->substr(0, unknown->find('='));
  std::vector<std::string> others;
  for (const CLI::App* other : app.get_subcommands({}))
    if (const auto flags = flags_of(*other); std::find(flags.begin(), flags.end(), flag) != flags.end())
      others.push_back(other->get_name());
  throw UsageError(fmt::format(
      "{}: unknown option {} ({}); see lamina_bench {} --help", subcommand.get_name(), flag,
      others.empty() ? near_names(flag, flags_of(subcommand)) : fmt::format("accepted by: {}", fmt::join(others, ", ")),
      subcommand.get_name()));
}

/// Adds flags of Google Benchmark from the environment, unless the user typed them: BENCHMARK_FILTER gives
/// --benchmark_filter. Flags that `run` does not define are not added, because the library reads them itself.
void add_environment(std::vector<std::string>& words, const CLI::App& run) {
  const std::vector<std::string> typed = words;
  for (const CLI::Option* option : run.get_options()) {
    const auto is_its = [&](const std::string& word) {
      return word.starts_with("--") && option->check_lname(word.substr(2, word.find('=') - 2));
    };
    if (std::ranges::any_of(typed, is_its)) continue;
    for (std::string name : option->get_lnames()) {
      const std::string flag = "--" + name + "=";
      for (char& letter : name) letter = static_cast<char>(std::toupper(letter));
      const char* const value = name.starts_with("BENCHMARK_") ? std::getenv(name.c_str()) : nullptr;
      if (value != nullptr && *value != '\0') words.push_back(flag + value);
    }
  }
}

/// The arguments in the order that CLI11 wants, the last first. If they name no subcommand, `run` is added. Throws
/// UsageError for a first word that is neither a subcommand nor a network, and for a flag with an empty value, because
/// CLI11 would take the next word as the value.
std::vector<std::string> arguments_of(int argc, const char* const* argv, const CLI::App& run) {
  std::vector<std::string> words(argv + 1, argv + argc), known;
  for (const std::string& word : words)
    if (word.empty() || (word.starts_with("--") && word.find('=') == word.size() - 1))
      throw UsageError(
          fmt::format("{} has no value: give one, or leave it out", word.empty() ? "an empty word" : word));
  for (const Command& command : commands()) known.emplace_back(command.name);
  const bool about_all = !words.empty() && (words[0] == "--help" || words[0] == "-h" || words[0] == "--version");
  const bool is_command = !words.empty() && std::ranges::find(known, words[0]) != known.end();
  if (!words.empty() && !words[0].starts_with('-') && !is_command) {
    for (const nets::Info& network : nets::list()) known.emplace_back(network.name);
    for (const std::string& name : CLI::detail::split(words[0], ',')) {
      if (std::ranges::find(known, name) != known.end()) continue;
      check_no_path(name);
      throw UsageError(fmt::format("no subcommand or network \"{}\": {}; see --help", name, near_names(name, known)));
    }
  }
  if (!about_all && !is_command) words.insert(words.begin(), "run");
  if (!about_all && words[0] == "run") add_environment(words, run);
  std::reverse(words.begin(), words.end());
  return words;
}

/// Whether this process is the only one. If there are several, rank 0 reports that the subcommand allows only one.
bool is_alone(const std::string& subcommand) {
  if (!launched_by_mpi()) return true;
  const auto ranks = make_communicator("mpi");
  if (ranks->size() > 1 && ranks->rank() == 0)
    fmt::print(stderr, "lamina_bench: {} is for one process, and mpirun started {}; run and train take several\n",
               subcommand, ranks->size());
  return ranks->size() == 1;
}

/// The action of the subcommand that the user named.
std::function<int()> parse(CLI::App& app, int argc, const char* const* argv, const MakeBackend& make) {
  std::function<int()> chosen;
  app.footer(exits);
  app.require_subcommand(1);
  app.set_version_flag("--version", fmt::format("lamina_bench {} of commit {}, with Google Benchmark {}",
                                                build::lamina_version, build::commit, build::benchmark_version));
  for (const Command& command : commands()) {
    CLI::App& subcommand = *app.add_subcommand(command.name, command.about);
    subcommand.allow_extras()->callback([&, action = command.add(subcommand)] {
      check_extras(app, subcommand);
      chosen = [&, action] { return command.takes_ranks || is_alone(command.name) ? action(make) : 2; };
    });
  }
  app.parse(arguments_of(argc, argv, *app.get_subcommand("run")));
  return chosen;
}

int run_arguments(int argc, char** argv, const MakeBackend& make) {
  CLI::App app{about, "lamina_bench"};
  const auto ended = [](const std::string& why, int status) {
    if (status == 2) print_on_rank_0();
    fmt::print(stderr, "lamina_bench: {}\n", why);
    return status;
  };
  try {
    return parse(app, argc, argv, make)();
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return 0;
  } catch (const CLI::CallForVersion& version) {
    fmt::print("{}\n", version.what());
    return 0;
  } catch (const CLI::ParseError& error) {
    return ended(fmt::format("{}; see --help", error.what()), 2);
  } catch (const UsageError& error) {
    return ended(error.what(), 2);
  } catch (const ShapeError& error) {  // the user typed the sizes, or named a file that has them
    return ended(error.what(), 2);
  } catch (const std::bad_alloc&) {
    return ended("the host is out of memory", 1);
  } catch (const std::exception& error) {
    return ended(error.what(), 1);
  }
}

}  // namespace

int run_program(int argc, char** argv, const MakeBackend& make) {
  int status = run_arguments(argc, argv, make);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    fmt::print(stderr, "lamina_bench: cannot write to standard output: the output is lost\n");
    status = status == 0 ? 1 : status;
  }
  return status;
}

}  // namespace lamina::bench
