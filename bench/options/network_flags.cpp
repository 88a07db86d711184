// The flags for networks that are not in the zoo: ONNX files, and layers, which are given by the fields of their ops.

#include <fmt/ranges.h>

#include <charconv>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <system_error>

#include "flags.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

/// Adds an entry for each pair such as "height=224". Throws CLI11's error.
void take_extents(std::map<std::string, std::int64_t>& extents, const std::vector<std::string>& pairs) {
  for (const std::string& pair : pairs) {
    const std::size_t equals = pair.rfind('=');
    const char* const end = pair.data() + pair.size();
    std::int64_t extent = 0;
    if (equals != std::string::npos) {
      const auto [read_to, error] = std::from_chars(pair.data() + equals + 1, end, extent);
      if (error != std::errc() || read_to != end) extent = 0;
    }
    if (equals == 0 || extent < 1)
      throw CLI::ValidationError("--onnx_extents", fmt::format("takes pairs as height=224, not \"{}\"", pair));
    if (!extents.emplace(pair.substr(0, equals), extent).second)
      throw CLI::ValidationError("--onnx_extents", fmt::format("names {} twice", pair.substr(0, equals)));
  }
}

/// Throws UsageError if two networks have the same name. A network has the name of its file.
void check_names(const std::vector<std::filesystem::path>& files) {
  std::vector<std::string> names;
  for (const std::filesystem::path& file : files) names.push_back(network_name(file));
  check_once("--onnx, which calls networks by their files,", names);
}

std::string open_text(const std::filesystem::path& file, const std::vector<OnnxOpenExtent>& open) {
  std::vector<std::string> names;
  for (const OnnxOpenExtent& extent : open) names.push_back(extent.name + (extent.batch ? " (of --batch)" : ""));
  return fmt::format("{} leaves {} open", file.string(),
                     names.empty() ? "no axis" : fmt::format("{}", fmt::join(names, ", ")));
}

/// Adds a flag that takes `least` to `most` numbers, with an x between the numbers.
CLI::Option* add_numbers(CLI::App& app, const char* name, std::size_t least, std::size_t most, const char* form,
                         const char* text, std::function<void(const std::vector<int>&)> take) {
  const auto read = [=, take = std::move(take)](const std::string& word) {
    std::vector<int> numbers;
    for (const std::string& part : CLI::detail::split(word, 'x')) {
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), numbers.emplace_back());
      if (error != std::errc() || end != part.data() + part.size()) numbers.resize(most + 1);
    }
    if (numbers.size() < least || numbers.size() > most || word.ends_with('x'))
      throw CLI::ValidationError(name, fmt::format("takes {}, not \"{}\"", form, word));
    take(numbers);
  };
  return app.add_option_function<std::string>(name, read, text)->type_name("NUMBERS");
}

CLI::Option* add_extents(CLI::App& app, const char* name, Size& to, const char* text) {
  return add_numbers(app, name, 1, 2, "a number, or rows and columns as 1x7", text, [&to](const auto& numbers) {
    to = {numbers.front(), numbers.back()};
  });
}

/// Adds a flag that takes the name of a value. Unlike add_choice, keeps the word as typed, for the layer's command.
template <class T>
void add_name(CLI::App& app, const char* name, T& to, const std::map<std::string, T>& known, const char* text) {
  app.add_option_function<std::string>(
         name, [&to, known](const std::string& word) { to = known.at(word); }, text)
      ->check(CLI::IsMember(known));
}

void add_fields(CLI::App& app, Conv& op) {
  app.add_option("--channels", op.channels, "Channels of the output")->required();
  add_extents(app, "--kernel", op.kernel, "Rows and columns of the window")->required();
  add_extents(app, "--stride", op.stride, "Default: 1");
  add_extents(app, "--pad", op.pad, "Zeros on each side; default: 0");
  add_extents(app, "--dilation", op.dilation, "Default: 1");
  app.add_option("--groups", op.groups, "Default: 1");
  app.add_flag("--bias,!--no_bias", op.bias, "Default: with a bias");
}

template <class Pool>
requires requires(Pool pool) { pool.window; }
void add_fields(CLI::App& app, Pool& op) {
  add_extents(app, "--window", op.window, "Rows and columns of the window")->required();
  add_extents(app, "--stride", op.stride, "Rows and columns from one window to the next")->required();
  add_extents(app, "--pad", op.pad, "Default: 0");
  add_name<Rounding>(app, "--rounding", op.rounding, {{"down", Rounding::down}, {"up", Rounding::up}},
                     "Rounding of the number of windows; default: down");
  if constexpr (std::is_same_v<Pool, AveragePool>)
    app.add_flag("--count_padding", op.count_padding, "The divisor counts the padding, too");
}

void add_fields(CLI::App& app, BatchNorm& op) {
  app.add_option("--epsilon", op.epsilon, "Default: 1e-5");
  app.add_option("--momentum", op.momentum, "Default: 0.1");
}

void add_fields(CLI::App& app, FullyConnected& op) {
  app.add_option("--outputs", op.outputs, "Channels of the output")->required();
  app.add_flag("--bias,!--no_bias", op.bias, "Default: with a bias");
}

void add_fields(CLI::App& app, Recurrent& op) {
  app.add_option("--hidden", op.hidden, "Channels of the output")->required();
  add_name<Steps>(app, "--steps", op.steps, {{"all", Steps::all}, {"last", Steps::last}},
                  "Steps whose output is given; default: all");
  add_name<Gates>(app, "--gates", op.gates, {{"logistic", Gates::logistic}, {"hard_sigmoid", Gates::hard_sigmoid}},
                  "Default: logistic");
  app.add_flag("--reverse", op.reverse, "From the last step to the first");
}

template <class Other>
void add_fields(CLI::App&, Other&) {}

/// The ops whose layers can be given on the command line. Fields without a default are placeholders.
const Op plain_ops[] = {Conv{.channels = 0, .kernel = 1},
                        MaxPool{.window = 1, .stride = 1},
                        AveragePool{.window = 1, .stride = 1},
                        BatchNorm{},
                        FullyConnected{.outputs = 0},
                        Recurrent{.hidden = 0},
                        Recurrent{.hidden = 0, .cell = Cell::gru}};

const Op& plain_op(const std::string& name) {
  std::vector<std::string> known;
  for (const Op& op : plain_ops)
    if (known.emplace_back(op_name(op)) == name) return op;
  throw UsageError(fmt::format("no layer \"{}\": {}", name, near_names(name, known)));
}

/// The words that give a layer: the name of the op, and the flags that were typed.
std::vector<std::string> arguments_of(const CLI::App& app, const std::vector<CLI::Option*>& flags) {
  std::vector<std::string> words{app.get_name()};
  for (const CLI::Option* option : flags)
    if (option->count() > 0)
      words.push_back(fmt::format("--{}={}", option->get_lnames().front(), fmt::join(option->results(), ",")));
  return words;
}

}  // namespace

CLI::Option* add_onnx_files(CLI::App& app, const std::string& name, std::vector<std::filesystem::path>& files) {
  return app
      .add_option_function<std::vector<std::filesystem::path>>(
          name, [&files](const auto& given) { check_names(files = given); },
          "ONNX files; a network has the name of its file")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::ExistingFile)
      ->type_name("FILE[,...]");
}

CLI::Option* add_onnx_extents(CLI::App& app, const std::string& name, std::map<std::string, std::int64_t>& extents) {
  return app
      .add_option_function<std::vector<std::string>>(
          name, [&extents](const auto& pairs) { take_extents(extents, pairs); },
          "Extents of axes that these files leave open; NAME: the axis' name there")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME=EXTENT[,...]")
      ->needs("--onnx");
}

void check_onnx_extents(const std::vector<std::filesystem::path>& files, const OnnxOptions& settings) {
  if (settings.extents.empty()) return;
  std::set<std::string> names;
  std::vector<std::string> all;
  for (const std::filesystem::path& file : files) {
    const std::vector<OnnxOpenExtent> open = onnx_open_extents(file);
    for (const OnnxOpenExtent& extent : open) names.insert(extent.name);
    all.push_back(open_text(file, open));
  }
  for (const auto& [name, extent] : settings.extents)
    if (!names.contains(name))
      throw UsageError(fmt::format("--onnx_extents: no axis is open by the name {}; {}", name, fmt::join(all, "; ")));
}

Graph Layer::graph() const {
  Graph graph("layer");
  apply(op, {graph.input(x)});
  return graph;
}

void add_layer(CLI::App& app, std::vector<Layer>& layers) {
  const auto layer = std::make_shared<Layer>(Layer{.op = plain_op(app.get_name())});
  add_numbers(app, "--input", 4, 4, "images, channels, rows and columns as 16x64x56x56", "N x C x H x W of the input",
              [layer](const auto& n) {
                layer->x = {n[0], n[1], n[2], n[3]};
              })
      ->required();
  std::visit([&app](auto& op) { add_fields(app, op); }, layer->op);
  app.parse_complete_callback([layer, flags = app.get_options(), &app, &layers] {
    layer->name = fmt::format("{} of {}", to_string(layer->op), to_string(layer->x));
    layer->words = arguments_of(app, flags);
    try {
      layer->graph();
    } catch (const ShapeError& error) {
      throw UsageError(error.what());
    }
    layers.push_back(*layer);
  });
}

void add_layers(CLI::App& app, std::vector<Layer>& layers) {
  for (const Op& op : plain_ops)
    add_layer(*app.add_subcommand(std::string(op_name(op)), "One layer by its fields")->fallthrough(), layers);
}

void add_layer_file(CLI::App& app, std::vector<Layer>& layers) {
  const auto read = [&layers](const std::filesystem::path& file) {
    std::ifstream lines(file);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      std::istringstream words(line.substr(0, line.find('#')));
      std::string op, its_fields;
      if (!(words >> op)) continue;
      std::getline(words, its_fields);
      try {
        CLI::App one("", op);
        add_layer(one, layers);
        one.parse(its_fields);
      } catch (const std::exception& error) {
        throw UsageError(fmt::format("{}:{}: {}", file.string(), number, error.what()));
      }
    }
    if (layers.empty()) throw UsageError(file.string() + " has no line of a layer: conv --input=... --channels=...");
  };
  app.add_option_function<std::filesystem::path>(
         "file", read, "Layers, a line each: conv --input=16x64x56x56 --channels=128 --kernel=3")
      ->check(CLI::ExistingFile)
      ->type_name("FILE")
      ->required();
}

}  // namespace lamina::bench
