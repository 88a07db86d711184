// Which flags go together: what each belongs to, and what excludes what.

#include "option_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "lamina/error.h"

namespace lamina::bench {
namespace {

/// What is done instead of timing rows: one of them.
struct TaskFlag {
  Task task;
  const char* flag;
};
constexpr std::array task_flags = {TaskFlag{Task::list, "--benchmark_list_tests"},
                                   TaskFlag{Task::networks, "--networks"},
                                   TaskFlag{Task::describe, "--describe"},
                                   TaskFlag{Task::memory, "--memory"},
                                   TaskFlag{Task::ledger, "--ledger"},
                                   TaskFlag{Task::frontier, "--frontier"},
                                   TaskFlag{Task::devices, "--devices"},
                                   TaskFlag{Task::engines, "--cudnn_engines"}};

std::vector<std::string> all_task_flags() {
  std::vector<std::string> flags;
  for (const TaskFlag& each : task_flags) flags.emplace_back(each.flag);
  return flags;
}

/// Flags and the tasks that look at them. Listing rows takes what timing them does.
struct Belongs {
  std::vector<const char*> flags;
  std::vector<Task> tasks;
};

void check_belongs(const std::function<bool(const char*)>& given, const BenchOptions& options, const Belongs& rule) {
  const Task asked = options.task == Task::list ? Task::run : options.task;
  if (std::find(rule.tasks.begin(), rule.tasks.end(), asked) != rule.tasks.end()) return;
  std::vector<std::string> others;
  for (const TaskFlag& each : task_flags)
    if (std::find(rule.tasks.begin(), rule.tasks.end(), each.task) != rule.tasks.end()) others.emplace_back(each.flag);
  for (const char* flag : rule.flags) {
    if (!given(flag)) continue;
    if (asked == Task::run)
      throw UsageError(fmt::format("{} belongs to {}; give {} too", flag, fmt::join(others, ", "),
                                   others.size() == 1 ? "that" : "one of them"));
    const auto task =
        std::find_if(task_flags.begin(), task_flags.end(), [&](const TaskFlag& each) { return each.task == asked; });
    throw UsageError(fmt::format("{} belongs to timed rows{}{}; {} would not look at it", flag,
                                 others.empty() ? "" : ", ", fmt::join(others, ", "), task->flag));
  }
}

void check_tasks(const std::function<bool(const char*)>& given, const BenchOptions& options) {
  using enum Task;
  const Belongs rules[] = {
      {{"--format"}, {networks, describe, memory, ledger, frontier, devices, engines}},
      {{"--choices_out"}, {frontier}},
      {{"--device"}, {engines}},
      {{"--benchmark_filter", "--benchmark_context", "--cuda_graph", "--weights", "--long_run"}, {run}},
      {{"--benchmark_out", "--benchmark_out_format", "--benchmark_format"}, {run, engines}},
      {{"--image", "--width_divisor", "--softmax"}, {run, describe, memory, ledger, frontier, engines}},
      {{"--dtype"}, {run, describe, memory, ledger, frontier}},
      {{"--batch", "--layout"}, {run, memory, ledger, frontier, engines}},
      {{"--cudnn"}, {run, memory, ledger, frontier, devices, engines}},
      {{"--threads", "--instruction_set", "--choice_cache"}, {run, memory, ledger, frontier, devices}},
      {{"--backend", "--keep", "--unfused", "--input_gradient", "--accumulate", "--memory_limit", "--math",
        "--deterministic", "--max_error", "--workspace_limit"},
       {run, memory, ledger, frontier}},
      {{"--passes"}, {run, ledger, frontier}},
      {{"--choices", "--measure"}, {run, memory, ledger}}};
  for (const Belongs& rule : rules) check_belongs(given, options, rule);
}

/// Throws UsageError for what a list names twice: the same thing would be done twice, under one name.
template <class T, class Text>
void check_once(const char* flag, std::vector<T> values, const Text& text) {
  std::sort(values.begin(), values.end());
  const auto twice = std::adjacent_find(values.begin(), values.end());
  if (twice != values.end()) throw UsageError(fmt::format("{} names {} twice; once is enough", flag, text(*twice)));
}

void check_lists(const BenchOptions& options) {
  const auto as_it_is = [](const auto& value) { return value; };
  const auto by_name = [](auto value) { return to_string(value); };
  for (const TaskFlag& each : task_flags)
    if (each.task == options.task) check_once(each.flag, options.networks, as_it_is);
  check_once("--backend", options.backends, as_it_is);
  check_once("--batch", options.batches, as_it_is);
  check_once("--dtype", options.dtypes, by_name);
  check_once("--layout", options.layouts, by_name);
}

void check_table(const std::function<bool(const char*)>& given, const BenchOptions& options) {
  if (options.table && options.task != Task::run)
    throw UsageError(
        fmt::format("--table times rows; it does not go with any of {}", fmt::join(all_task_flags(), ", ")));
  for (const char* flag : {"--results", "--quick", "--full", "--published"})
    if (given(flag) && !options.table) throw UsageError(fmt::format("{} belongs to --table; give that too", flag));
  if (options.full && options.passes != 0) throw UsageError("--full means 10 passes; leave out it or --passes");
  if (options.quick && given("--benchmark_filter"))
    throw UsageError("--quick is a choice of networks; leave out it or --benchmark_filter");
}

void check_choices(const std::function<bool(const char*)>& given, const BenchOptions& options) {
  const bool eigen = options.backends.empty() ||
                     std::find(options.backends.begin(), options.backends.end(), "eigen") != options.backends.end();
  if (given("--instruction_set") && !eigen)
    throw UsageError("--instruction_set is of eigen, which --backend does not name; name it too, or leave out the set");
  if (given("--choice_cache") && given("--instruction_set") && !options.choice.measure)
    throw UsageError(
        "--choice_cache keeps what is measured, and --instruction_set leaves nothing to measure: give --measure too, or"
        " leave out one of them");
  if (options.choice.measure && given("--choices"))
    throw UsageError("--choices names algorithms, --measure times them; leave out one");
}

}  // namespace

void check_flags(const std::function<bool(const char*)>& given, const BenchOptions& options) {
  if (std::count_if(task_flags.begin(), task_flags.end(), [&](const TaskFlag& each) { return given(each.flag); }) > 1)
    throw UsageError(fmt::format("{} exclude each other", fmt::join(all_task_flags(), ", ")));
  if (options.task == Task::engines && !given("--device"))
    throw UsageError("--cudnn_engines asks about a device: give --device=h200, --device=a100 or a JSON file");
  check_table(given, options);
  if (options.cudnn.size() > 1)
    throw UsageError("--cudnn takes one directory, as a process loads one cuDNN; bench/race/versions compares several");
  check_choices(given, options);
  check_tasks(given, options);
  check_lists(options);
}

}  // namespace lamina::bench
