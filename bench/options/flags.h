#pragma once
// The flags that several subcommands share. Each flag is declared once. The declaration says how the flag is read, how
// it is written in a command, and which keys of rows show it.

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lamina/error.h"
#include "settings.h"

namespace lamina::bench {

template <class T>
using Names = std::vector<std::pair<const char*, T>>;

/// Restricts an option to the names of known values. --help shows the names.
template <class T>
CLI::Option* choose(CLI::Option* option, const Names<T>& known) {
  std::vector<std::string> names;
  std::vector<std::pair<std::string, int>> numbers;  // CLI11 reads an enumeration as a number
  for (const auto& [name, value] : known) {
    names.push_back(name);
    numbers.emplace_back(name, static_cast<int>(value));
  }
  CLI::Transformer to_number(numbers, CLI::ignore_case);
  to_number.description("");
  return option->transform(to_number)->transform(CLI::IsMember(names, CLI::ignore_case));  // the last one runs first
}

/// An option whose value is one of the known names. It is read as a number, because CLI11 cannot print an enumeration.
template <class T>
CLI::Option* add_choice(CLI::App& app, const std::string& name, T& to, const Names<T>& known, const char* text) {
  auto* option = app.add_option_function<int>(
      name, [&to](int number) { to = static_cast<T>(number); }, text);
  return choose(option, known);
}

inline const Names<DType> dtypes = {
    {"f64", DType::f64}, {"f32", DType::f32}, {"f16", DType::f16}, {"bf16", DType::bf16}};
inline const Names<Layout> layouts = {{"nchw", Layout::nchw}, {"nhwc", Layout::nhwc}};

/// The groups of flags, as bits. A subcommand has only the groups that it needs.
enum FlagSet : unsigned {
  onnx_flags = 1 << 0,
  size_flags = 1 << 1,
  backend_flags = 1 << 2,
  layout_flags = 1 << 3,
  batch_flags = 1 << 4,
  processor_flags = 1 << 5,
  cudnn_flags = 1 << 6,
  limit_flags = 1 << 7,  ///< limits on memory and algorithms
  error_flags = 1 << 8,  ///< limit on the error that an algorithm guarantees
  plan_flags = 1 << 9,
  measure_flags = 1 << 10,
  mode_flags = 1 << 11,
  row_flags = 1 << 12,  ///< how rows of `run` are timed
  dtype_flags = 1 << 13,
  place_flags = backend_flags | dtype_flags | layout_flags | processor_flags | cudnn_flags | limit_flags,
  network_flags = place_flags | onnx_flags | size_flags | batch_flags | plan_flags,
};

/// Adds the flags of these groups. options/flags.cpp has the table of all flags. `needs`: a flag that these flags need.
void add_flags(CLI::App&, unsigned sets, PlanningSettings&, const char* needs = nullptr);

/// Adds an option that takes a list: one word, with commas between the values.
template <class T>
CLI::Option* add_list(CLI::App& app, const std::string& name, std::vector<T>& to, const char* text) {
  return app.add_option(name, to, text)->delimiter(',')->allow_extra_args(false);
}

CLI::Option* add_passes(CLI::App&, int& passes);
CLI::Validator above_zero(double most = std::numeric_limits<double>::max());
/// Adds an option that takes a share, such as "3%".
CLI::Option* add_share(CLI::App&, const char* names, const std::function<void(double)>& take, const char* text);
/// Adds the positional names of networks. The names of files of --onnx and of layers are appended to the list.
void add_networks(CLI::App&, std::vector<std::string>& networks, NetSettings&);
void add_format(CLI::App&, Format&);
/// Adds --benchmark_out.
void add_out(CLI::App&, std::filesystem::path& file);
/// Adds --input, and flags for the fields of the subcommand's op. When they are read, the layer is appended to the
/// list.
void add_layer(CLI::App&, std::vector<Layer>&);
/// Adds a subcommand for each op whose layers can be given.
void add_layers(CLI::App&, std::vector<Layer>&);
/// Adds an argument for a file of layers. A line is a layer: "conv --input=16x64x56x56 --channels=128 --kernel=3". Text
/// after a # is a comment. A wrong line is a UsageError.
void add_layer_file(CLI::App&, std::vector<Layer>&);

// Add --onnx and --onnx_extents.
CLI::Option* add_onnx_files(CLI::App&, const std::string& name, std::vector<std::filesystem::path>& files);
CLI::Option* add_onnx_extents(CLI::App&, const std::string& name, std::map<std::string, std::int64_t>&);

/// Checks the settings before anything is measured. Throws UsageError for flags that exclude each other, for a list
/// that names a thing twice, and for a missing folder. Throws FileError for a file of choices that cannot be read.
void check(const BackendSettings&);
void check(const PlanSettings&);
void check(const PlanningSettings&);
/// Throws UsageError for an extent whose name no file leaves open; the text lists the open names of each file. Throws
/// what onnx_open_extents throws.
void check_onnx_extents(const std::vector<std::filesystem::path>& files, const OnnxOptions&);

/// The results whose keys show a flag under "differs". `in_place`: none, because the flag has a field of its own in the
/// key. `files`: the results of networks that are read from files.
enum class Keys { none, in_place, all, networks, trainings, net_rows, layers, files, eigen };

/// A row of a table of flags.
template <class Settings>
struct Flag {
  std::string name;  ///< name as CLI11 takes it: "--image", "!--unfused", "--softmax,!--no_softmax"
  unsigned set;      ///< set of the flag, one of FlagSet
  std::function<CLI::Option*(CLI::App&, const std::string& name, Settings&)> add;
  std::function<std::optional<std::string>(const Settings&)> value;  ///< value as text; none: it is the default
  Keys keys = Keys::none;
  std::string key{};  ///< name in keys; if it is not the flag's own name, keys show no value

  /// The flag in a command: "--image=64", "--unfused", "--no_softmax"; none: the value is the default.
  std::optional<std::string> word(const Settings& settings) const {
    const std::optional<std::string> its = value(settings);
    if (!its) return {};
    if (const std::size_t no = name.find(",!"); no != std::string::npos)
      return *its == "1" ? name.substr(0, no) : name.substr(no + 2);
    return name.substr(name.starts_with('!') ? 1 : 0) + (its->empty() ? "" : "=" + *its);
  }
};

// The value of a flag as text.
inline std::string word_of(bool) { return {}; }  // a switch has no value
inline std::string word_of(std::optional<bool> is) { return is.value_or(false) ? "1" : "0"; }
inline std::string word_of(Keep keep) { return keep == Keep::cheap ? "cheap" : "all"; }
inline std::string word_of(Mode) { return {}; }
inline std::string word_of(const std::string& text) { return text; }
inline std::string word_of(const std::filesystem::path& path) { return path.string(); }
inline std::string word_of(const std::pair<const std::string, std::int64_t>& pair) {
  return fmt::format("{}={}", pair.first, pair.second);
}
template <class T>
std::string word_of(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return std::string(to_string(value));
  } else if constexpr (requires { value.begin(); }) {
    std::string text;
    for (const auto& each : value) text += (text.empty() ? "" : ",") + word_of(each);
    return text;
  } else {
    return fmt::format("{}", value);
  }
}

/// Throws UsageError if the list of a flag names a value twice: two results would have one name.
template <class T>
void check_once(const char* flag, std::vector<T> values) {
  std::sort(values.begin(), values.end());
  if (const auto twice = std::adjacent_find(values.begin(), values.end()); twice != values.end())
    throw UsageError(fmt::format("{} names {} twice; once is enough", flag, word_of(*twice)));
}

/// A row of a table of flags. `at` gives the field of settings; `add(app, name, field)` adds the option for the field.
template <class Settings, class At, class Add>
Flag<Settings> flag(std::string name, unsigned set, At at, Add add, Keys keys = Keys::none, std::string key = {}) {
  const auto value = [at](const Settings& settings) {
    static const Settings usual{};
    return at(settings) == at(usual) ? std::nullopt : std::optional(word_of(at(settings)));
  };
  if (key.empty() && keys > Keys::in_place) key = name.substr(2, name.find(',') - 2);
  const auto add_to = [=](CLI::App& app, const std::string& as, Settings& to) { return add(app, as, at(to)); };
  return {std::move(name), set, add_to, value, keys, std::move(key)};
}
// NOLINTBEGIN(bugprone-macro-parentheses): a field of a field takes no parentheses
#define LAMINA_AT(field) \
  [](auto& settings) -> auto& { return settings.field; }
// NOLINTEND(bugprone-macro-parentheses)

// Functions that make the argument `add` of flag(): a function that adds an option for a field.
template <class... Checks>
auto value(const char* text, Checks... checks) {
  return [=](CLI::App& app, const std::string& name, auto& to) {
    auto* option = app.add_option(name, to, text);
    (option->check(checks), ...);
    return option;
  };
}
inline auto on(const char* text) {
  return [=](CLI::App& app, const std::string& name, bool& to) { return app.add_flag(name, to, text); };
}
template <class T>
auto one_of(const char* text, std::vector<std::pair<const char*, T>> known) {
  return [=](CLI::App& app, const std::string& name, T& to) { return add_choice(app, name, to, known, text); };
}

}  // namespace lamina::bench
