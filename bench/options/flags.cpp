// The flags that several subcommands share.

#include "flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "lamina/error.h"

namespace lamina::bench {
namespace {

constexpr const char* what = "What is timed";
CLI::Range counts() { return {1, std::numeric_limits<int>::max(), "from 1"}; }

/// A number of bytes: "4GiB", "500MB", "4096".
CLI::Option* add_bytes(CLI::App& app, const char* name, std::size_t& to, std::size_t least, const char* text) {
  constexpr bool kb_is_1000 = true;  // and KiB 1024
  CLI::AsSizeValue to_bytes(kb_is_1000);
  to_bytes.description("");
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max() / 2;  // "-1" is read as more
  return app.add_option(name, to, text)->transform(to_bytes)->check(CLI::Range(least, most, " "))->type_name("BYTES");
}

/// A list, joined by commas in one word.
template <class T>
CLI::Option* add_list(CLI::App& app, const char* name, std::vector<T>& to, const char* text) {
  return app.add_option(name, to, text)->delimiter(',')->allow_extra_args(false)->group(what);
}

/// Throws UsageError for what a list names twice: the same thing would be done twice, under one name.
template <class T, class Text>
void check_once(const char* flag, std::vector<T> values, const Text& text) {
  std::sort(values.begin(), values.end());
  const auto twice = std::adjacent_find(values.begin(), values.end());
  if (twice != values.end()) throw UsageError(fmt::format("{} names {} twice; once is enough", flag, text(*twice)));
}

constexpr auto as_it_is = [](const auto& value) { return value; };
constexpr auto by_name = [](auto value) { return to_string(value); };

void add_optional(CLI::App& app, const char* names, std::optional<bool>& to, const char* text) {
  app.add_flag_function(
         names, [&to](std::int64_t count) { to = count > 0; }, text)
      ->group(what);
}

}  // namespace

CLI::Option* add_passes(CLI::App& app, Settings& settings) {
  return app
      .add_option("--passes,--benchmark_repetitions", settings.passes,
                  "Timed passes, after one to warm up; default: 10 on a GPU, 3 on a processor")
      ->check(counts())
      ->group(what);
}

void add_networks(CLI::App& app, std::vector<std::string>& networks) {
  app.add_option("networks", networks, "Names of networks, as `lamina_bench networks` prints them")
      ->delimiter(',')
      ->type_name("NET ...")
      ->required();
}

void add_format(CLI::App& app, Format& format) {
  choose<Format>(app.add_option("--format", format, "Of the tables"), {{"text", Format::text}, {"csv", Format::csv}});
}

void add_screen(CLI::App& app, Screen& screen) {
  choose<Screen>(app.add_option("--benchmark_format", screen, "On standard output"),
                 {{"console", Screen::console}, {"json", Screen::json}})
      ->group("Rows");
}

void add_size(CLI::App& app, Settings& settings) {
  app.add_option("--image", settings.image,
                 "Rows and columns of the input; `lamina_bench networks` prints the smallest; default: the network's "
                 "own")
      ->check(counts())
      ->group(what);
  app.add_option("--width_divisor", settings.width_divisor, "Divides every hidden width: narrow networks for trials")
      ->check(counts())
      ->group(what);
  add_optional(app, "--softmax,!--no_softmax", settings.softmax, "End in a softmax; default: as published");
}

void add_dtype(CLI::App& app, Settings& settings) {
  choose<DType>(add_list(app, "--dtype", settings.dtypes, "Element types; default: f32"),
                {{"f32", DType::f32}, {"f64", DType::f64}});
}

void add_batch(CLI::App& app, Settings& settings) {
  add_list(app, "--batch", settings.batches, "Images per pass; default: 16")->check(counts());
  choose<Layout>(add_list(app, "--layout", settings.layouts, "Layouts of tensors; default: nchw"),
                 {{"nchw", Layout::nchw}, {"nhwc", Layout::nhwc}});
}

void add_cudnn(CLI::App& app, Settings& settings) {
  app.add_option("--cudnn", settings.cudnn, "Directory of the cuDNN to load; bench/race/versions compares several")
      ->type_name("DIR")
      ->group(what);
}

void add_processor(CLI::App& app, Settings& settings) {
  app.add_option("--threads", settings.threads, "Of a processor's backend; default: all")->check(counts())->group(what);
  app.add_option("--instruction_set", settings.instruction_set,
                 "Of eigen: generic, x86-64-v2, x86-64-v3, x86-64-v4; default: the fastest here")
      ->group(what);
  app.add_option("--choice_cache", settings.choice_cache,
                 "File that measured choices are kept in and taken from: the instruction set of eigen and, with "
                 "--measure, algorithms")
      ->type_name("FILE")
      ->group(what);
}

void add_plan(CLI::App& app, Settings& settings, const char* max_error) {
  add_list(app, "--backend", settings.backends, "Default: every one that can run here (cuda-host only by name)");
  add_batch(app, settings);
  add_dtype(app, settings);
  add_size(app, settings);
  add_processor(app, settings);
  add_cudnn(app, settings);
  choose<Keep>(
      app.add_option("--keep", settings.keep, "Until backward: all, or cheap (what is cheap to make again is dropped)"),
      {{"all", Keep::all}, {"cheap", Keep::cheap}})
      ->group(what);
  app.add_flag("!--unfused", settings.fuse, "Every op by itself")->group(what);
  add_optional(app, "--input_gradient,!--no_input_gradient", settings.input_gradient,
               "Compute the image's gradient; default: as published");
  add_optional(app, "--accumulate,!--no_accumulate", settings.accumulate,
               "Add to parameter gradients; default: as published");
  add_bytes(app, "--memory_limit", settings.memory_limit, 1, "Beyond it a plan is out of memory: 4GiB, 500MB")
      ->group(what);
  constexpr const char* algorithms = "Which algorithms";
  auto* math = app.add_option_function<int>(  // of the type itself CLI11 cannot make a text
      "--math", [&settings](int number) { settings.choice.math = static_cast<Math>(number); },
      "Of products; default: strict");
  choose<Math>(math, {{"strict", Math::strict}, {"tf32", Math::tf32}})->group(algorithms);
  app.add_flag("--deterministic", settings.choice.deterministic, "Only those with the same bits on every run")
      ->group(algorithms);
  app.add_option("--max_error", settings.choice.max_error, max_error)
      ->check(CLI::Range(std::numeric_limits<double>::min(), 1.0, "above 0"))
      ->group(algorithms);
  add_bytes(app, "--workspace_limit", settings.choice.workspace_limit, 0, "Of one call, 0 or as 64MiB; default: 1GiB")
      ->group(algorithms);
}

void add_choices(CLI::App& app, Settings& settings) {
  constexpr const char* algorithms = "Which algorithms";
  auto* measure = app.add_flag("--measure", settings.choice.measure,
                               "Of whole networks: by timing them when a plan is made, not by rule");
  auto* choices =
      app.add_option("--choices", settings.choices, "A file that `frontier --choices_out` wrote: algorithms by layer");
  measure->group(algorithms)->excludes(choices);
  choices->check(CLI::ExistingFile)->group(algorithms);
}

void check(const Settings& settings) {
  check_once("--backend", settings.backends, as_it_is);
  check_once("--batch", settings.batches, as_it_is);
  check_once("--dtype", settings.dtypes, by_name);
  check_once("--layout", settings.layouts, by_name);
  if (settings.cudnn.find(',') != std::string::npos)
    throw UsageError("--cudnn takes one directory, as a process loads one cuDNN; bench/race/versions compares several");
  const bool eigen = settings.backends.empty() ||
                     std::find(settings.backends.begin(), settings.backends.end(), "eigen") != settings.backends.end();
  if (!settings.instruction_set.empty() && !eigen)
    throw UsageError(
        "--instruction_set is of eigen, which --backend does not name; name it too, or leave out the "
        "set");
  if (!settings.choice_cache.empty() && !settings.instruction_set.empty() && !settings.choice.measure)
    throw UsageError(
        "--choice_cache keeps what is measured, and --instruction_set leaves nothing to measure: give --measure too, or"
        " leave out one of them");
}

void check_networks(const std::vector<std::string>& networks) {
  check_once("the list of networks", networks, as_it_is);
}

}  // namespace lamina::bench
