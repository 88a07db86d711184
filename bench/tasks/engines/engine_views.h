#pragma once
// The convolutions of networks, and what cuDNN's heuristics answer for them: once as they are by default (TF32), once
// with TF32 forbidden (strict), each asked in a separate process.

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/io/text_table.h"
#include "bench/options/settings.h"
#include "lamina/cudnn_engines.h"
#include "lamina/op.h"

namespace lamina::bench {

struct EnginesOptions {
  std::vector<std::string> networks{};
  Format format = Format::text;
  std::string device{};  ///< a known set of properties, or a file
  std::filesystem::path out{};
  Screen screen = Screen::console;
  std::string cudnn{};  ///< directory of the one to ask; empty: the system's
  NetSettings net{};
  ConfigSettings configs{};
};

/// A convolution (its bias apart) that networks have, once for all of them.
struct Convolution {
  struct Use {
    std::string network;
    std::string layer;  ///< the first of the network's
    int layers = 1;
  };
  Conv conv;
  Shape x;
  Layout layout = Layout::nchw;
  std::vector<Use> uses{};
};

/// The convolutions of the networks, at all batches and layouts of the options, each once.
std::vector<Convolution> distinct_convolutions(const EnginesOptions&);

constexpr std::array<Pass, 3> engine_passes = {Pass::forward, Pass::backward_data, Pass::backward_params};

/// What one process answered.
struct EngineView {
  std::string version, directory;  ///< of the cuDNN
  double seconds = 0;              ///< from opening the library to the last answer
  /// By convolution, then by pass.
  std::vector<std::array<std::vector<CudnnEngine>, engine_passes.size()>> engines{};
};

struct EngineViews {
  EngineView tf32;
  EngineView strict;  ///< asked with TF32 forbidden; engines that use tensor cores all the same are left out
  int left_out = 0;   ///< how many those were
};

/// Asks in two child processes at once, made by fork: call it before there are threads. Throws what CudnnEngines does,
/// and DeviceError where the library ended the child.
EngineViews ask_for_engines(const std::string& directory, const std::string& device, const std::vector<Convolution>&);

}  // namespace lamina::bench
