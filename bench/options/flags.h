#pragma once
// The flags that several subcommands share, each defined once.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "bench/io/text_table.h"
#include "settings.h"

namespace lamina::bench {

template <class T>
using Names = std::initializer_list<std::pair<const char*, T>>;

/// Lets an option take the names of values, which --help shows.
template <class T>
CLI::Option* choose(CLI::Option* option, const Names<T>& known) {
  std::vector<std::string> names;
  std::vector<std::pair<std::string, int>> numbers;  // as which CLI11 reads any enumeration
  for (const auto& [name, value] : known) {
    names.push_back(name);
    numbers.emplace_back(name, static_cast<int>(value));
  }
  CLI::Transformer to_number(numbers, CLI::ignore_case);
  to_number.description("");
  return option->transform(to_number)->transform(CLI::IsMember(names, CLI::ignore_case));  // the last one sees it first
}

/// An option whose value is one of these. CLI11 alone cannot make a text of such a type.
template <class T>
CLI::Option* add_choice(CLI::App& app, const char* name, T& to, const Names<T>& known, const char* text) {
  auto* option = app.add_option_function<int>(
      name, [&to](int number) { to = static_cast<T>(number); }, text);
  return choose(option, known);
}

constexpr Names<DType> dtypes = {{"f64", DType::f64}, {"f32", DType::f32}, {"f16", DType::f16}, {"bf16", DType::bf16}};

constexpr const char* every_backend = "Backends; default: every one that can run here (cuda-host only by name)";

/// A list, joined by commas in one word.
template <class T>
CLI::Option* add_list(CLI::App& app, const char* name, std::vector<T>& to, const char* text,
                      const char* group = "What is timed") {
  return app.add_option(name, to, text)->delimiter(',')->allow_extra_args(false)->group(group);
}

CLI::Option* add_passes(CLI::App&, int& passes);
CLI::Validator above_zero(double most = std::numeric_limits<double>::max());
/// A share as "3%".
CLI::Option* add_share(CLI::App&, const char* names, const std::function<void(double)>& take, const char* text);
/// The positional names. Those of the files of --onnx, and the layers, are added to them.
void add_networks(CLI::App&, std::vector<std::string>& networks, NetSettings&);
void add_format(CLI::App&, Format&);
/// --benchmark_out.
void add_out(CLI::App&, std::filesystem::path& file);
/// --onnx, with `text`, and how the files are read: --onnx_extents, --onnx_output, --all_refusals.
void add_onnx(CLI::App&, std::vector<std::filesystem::path>& files, OnnxSettings&, const char* text);
/// The above, --image, --width_divisor, --softmax.
void add_size(CLI::App&, NetSettings&);
/// --batch.
void add_batch(CLI::App&, ConfigSettings&);
/// --layout.
void add_layout(CLI::App&, ConfigSettings&);
/// The fields of the op that the subcommand is called by, and --input. The layer is added once they are read.
void add_layer(CLI::App&, std::vector<Layer>&);
/// A subcommand of it for each of these ops.
void add_layers(CLI::App&, std::vector<Layer>&);
/// A file of layers, each a line as add_layer takes it: "conv --input=16x64x56x56 --channels=128 --kernel=3". What
/// follows a # is a comment. A wrong line is a UsageError.
void add_layer_file(CLI::App&, std::vector<Layer>&);
/// --cudnn.
void add_cudnn(CLI::App&, std::string& directory);
/// --threads, --instruction_set.
void add_processor(CLI::App&, BackendSettings&);
/// What single layers run on: --backend, --dtype, --layout, --cudnn, --threads, limits of memory and algorithms.
/// `backends` says what --backend means. With `measured_error` there is --max_measured_error in place of --max_error.
void add_place(CLI::App&, PlanningSettings&, const char* backends = every_backend, double* measured_error = nullptr);
/// What plans are made of and on: all of the above but layers, and --keep, --unfused.
void add_plan(CLI::App&, PlanningSettings&, const char* backends = every_backend, double* measured_error = nullptr);
/// --optimiser, a name of optimiser_names().
CLI::Option* add_optimiser(CLI::App&, std::string& optimiser, const char* text);
/// --measure, --choice_cache.
void add_measure(CLI::App&, PlanSettings&);

/// Throws UsageError for what the list of a flag names twice: the same thing would be done twice, under one name.
void check_once(const char* flag, const std::vector<std::string>&);
void check_once(const char* flag, const std::vector<int>&);
/// Throws UsageError for flags of which each is right, and not together, for what a list names twice, and for a folder
/// that is not there. Throws FileError for a file of choices that cannot be read: before anything is measured.
void check(const BackendSettings&);
void check(const PlanSettings&);
void check(const PlanningSettings&);
/// Throws UsageError for an extent that no file leaves open by its name, with those that each leaves open, and what
/// onnx_open_extents throws.
void check_onnx_extents(const std::vector<std::filesystem::path>& files, const OnnxSettings&);

}  // namespace lamina::bench
