#pragma once
// The settings that several subcommands share, in groups. Each subcommand has only the groups that it needs.

#include <cstddef>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/io/text.h"
#include "lamina/onnx.h"
#include "lamina/plan.h"

namespace lamina::bench {

/// The backends of a run, and the options for making them.
struct BackendSettings {
  std::vector<std::string> names{};  ///< names; empty: all backends that can run here, except cuda-host and cudnn-graph
  std::string cudnn{};               ///< directory of the cuDNN to load; empty: the cuDNN that the system finds
  std::filesystem::path plans{};     ///< folder of cudnn-graph's plans
  int threads = 0;
  int device = 0;  ///< number of the GPU
  std::string instruction_set{};
  std::size_t memory_limit = std::numeric_limits<std::size_t>::max();

  bool has_memory_limit() const { return memory_limit != std::numeric_limits<std::size_t>::max(); }
};

/// The name of the network in an ONNX file: the file's name without folder and ending.
inline std::string network_name(const std::filesystem::path& onnx) { return to_utf8(onnx.stem().string()); }

/// A layer that was given by the fields of its op. It is used as a network of one layer.
struct Layer {
  std::string name{};  ///< name of the network: "conv(128, 3x3, stride 2x2, pad 1x1) of 16x64x56x56"
  Op op;
  Shape x{};
  std::vector<std::string> words{};  ///< words of the command that measures it: "conv", "--input=16x64x56x56", ...

  Graph graph() const;
};

/// The size of networks of the zoo, and further networks: files and layers.
struct NetSettings {
  int image = 0;  ///< rows and columns of the input; 0: the network's own
  int width_divisor = 1;
  std::optional<bool> softmax{};              ///< whether to end in a softmax; unset: as published
  std::vector<std::filesystem::path> onnx{};  ///< ONNX files; each network has the name of its file
  OnnxOptions onnx_settings{};  ///< options for reading, without the batch; a file uses the extents that it leaves open
  std::vector<Layer> layers{};
  int ranks = 1;  ///< number of processes that share each batch
};

/// The batches, types and layouts. Each network runs with every combination on every backend.
struct ConfigSettings {
  std::vector<int> batches = {16};
  std::vector<DType> dtypes = {DType::f32};
  std::vector<Layout> layouts = {Layout::nchw};
};

/// The settings for plans.
struct PlanSettings {
  /// Options of every plan, except type and layout, which ConfigSettings has. Only subcommands that plan in one mode
  /// use `mode`. `choice` has math and limits of the algorithms, and whether to measure, but no names of algorithms.
  Options options{};
  std::optional<bool> input_gradient{}, accumulate{};  ///< as in nets::Protocol; unset: as published
  std::filesystem::path choice_cache{};                ///< file of measured choices; empty: none
  bool cuda_graph = false;  ///< whether a network's passes are recorded once and launched whole
  bool cold = false;        ///< whether layers begin with empty caches
};

/// The settings of subcommands that plan networks on backends.
struct PlanningSettings {
  BackendSettings backends{};
  NetSettings net{};
  ConfigSettings configs{};
  PlanSettings plan{};
};

/// The settings of a subcommand that handles several networks, one after another.
struct TaskOptions : PlanningSettings {
  std::vector<std::string> networks{};
  Format format = Format::text;
  int passes = 0;               ///< number of samples of each time; 0: the default of the kind of device
  std::filesystem::path out{};  ///< file of the results as JSON; empty: none
};

/// The facts of a result that decide which flags its key shows.
struct KeyOf {
  std::string_view what, part, backend;
  std::map<std::string, std::string> as_published{};  ///< values of the published network, by the keys of flags
  bool of_file = false;                               ///< whether the network is read from a file
};

/// The settings that differ from the defaults, as names and values in a key: {"image", "64"}, {"graph", ""}.
using Differs = std::vector<std::pair<std::string, std::string>>;
Differs differs_of(const PlanningSettings&, const KeyOf&);
/// The settings that differ from the defaults, as flags: {"--image=64", "--cuda_graph"}. `unnamed`: only flags that
/// names of rows do not show.
std::vector<std::string> arguments_of(const PlanningSettings&, bool unnamed = false);
/// The part of a row's name after the batch: "/image:<value> /graph ...".
std::string key_help();

constexpr int most_passes = 100000;  ///< largest number of passes of a row: Google Benchmark needs kilobytes for each

enum class Screen { console, json, csv };  ///< form of standard output

}  // namespace lamina::bench
