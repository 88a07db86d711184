#pragma once
// The session of a subcommand: backends, graphs and plans according to the settings, and the rates of backends.
// Networks by name: the networks of the zoo, and of the ONNX files that the settings name.

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/machine/peaks.h"
#include "lamina/communicator.h"
#include "lamina/nets.h"

namespace lamina::bench {

/// A configuration: a network on a backend at one batch. Each configuration has rows or tables of its own.
struct Config {
  std::string network, backend;
  DType dtype = DType::f32;
  Layout layout = Layout::nchw;
  int batch = 16;
};

/// All combinations of networks, backends and batches, in this order. A network of one layer has only the layer's own
/// batch. Throws UsageError for an unknown network, and for several types or layouts.
std::vector<Config> configs(Backends&, const ConfigSettings&, const NetSettings&,
                            const std::vector<std::string>& names);

/// "resnet50 on eigen, batch 16"
std::string to_string(const Config&);

/// The facts of a network before it is built.
struct Network {
  std::string name;
  std::string source;  ///< origin of the network, in one line
  nets::Protocol protocol{};
  int image = 0, smallest_image = 0;            ///< rows and columns of the input; 0: the file decides
  std::optional<std::filesystem::path> file{};  ///< ONNX file of the network; none: it is of the zoo, or one layer
  const Layer* layer = nullptr;                 ///< the layer, for a network of one layer; null: another network
};

/// Throws UsageError if `name` is a path. The text names --onnx, the flag for paths.
void check_no_path(const std::string& name);

/// The network of this name. Throws UsageError for an unknown name, and if settings for the zoo are given with a file.
Network network(const std::string& name, const NetSettings&);

/// All networks: of the files that the settings name or, without files, of the zoo.
std::vector<Network> networks(const NetSettings&);

/// Removes from the settings the files that cannot be read, and reports each on standard error. Gives whether it has
/// removed a file. Throws Unsupported if no file can be read.
bool leave_out_refused(NetSettings&, int batch);

/// Reads a file with this batch, which --batch gives, and with the given extents of axes that the file leaves open.
/// Throws what read_onnx throws (the messages name flags in place of options), and UsageError if an extent sets a
/// different batch.
OnnxModel read_network_file(const std::filesystem::path& onnx, int batch, const OnnxOptions&);

/// The graph of a network, for one rank's part of the batch. For a network of the zoo, the settings decide whether it
/// ends in a softmax or, if unset, its protocol. Throws UsageError if the ranks cannot share the batch evenly.
Graph graph_of(const Config&, const NetSettings&);

/// The name of a mode: "training" or "inference".
inline const char* mode_name(Mode mode) { return mode == Mode::training ? "training" : "inference"; }

class Plans {
 public:
  Plans(NetSettings net, PlanSettings settings);

  /// The published protocol of a network, changed by the user's settings.
  nets::Protocol protocol(const std::string& network) const;
  Graph graph(const Config& config) const { return graph_of(config, net_); }
  /// The weights of a network that is read from a file. Empty for a network of the zoo.
  TensorFile weights(const Config&) const;
  Options options(const Config&, Mode) const;
  Options options(const Config& c) const { return options(c, settings_.options.mode); }
  bool trains() const { return settings_.options.mode == Mode::training; }
  const Choice& choice() const { return settings_.options.choice; }

 private:
  NetSettings net_;
  PlanSettings settings_;  ///< settings, with one tuner for all plans that measure, so that its file is read once
};

struct Session {
  explicit Session(const PlanningSettings& settings = {}, MakeBackend make = make_backend)
      : backends(settings.backends, std::move(make)), plans(settings.net, settings.plan), peaks(backends) {}
  Session(const Session&) = delete;  // `peaks` points to `backends`

  Backends backends;
  Plans plans;
  Peaks peaks;
  Communicator* ranks = nullptr;  ///< ranks of the run; null: a single rank
};

struct LargestBatch {
  int batch = 0;  ///< largest batch; 0: not even one image fits
  std::size_t bytes = 0;
  bool at_least = false;  ///< whether larger batches may fit, too, but were not tried
};

/// Predicts the memory that a network needs at any batch.
struct MemoryPredictor {
  Session& session;
  Config config;  ///< network and backend; its batch is ignored
  Mode mode;
  std::optional<Optimiser> optimiser{};  ///< optimiser whose state counts in training; none: no updates

  Options options() const;           ///< options of the plan that is predicted
  MemoryReport at(int batch) const;  ///< throws what predict_memory throws
  LargestBatch largest_under(std::size_t limit) const;
};

}  // namespace lamina::bench
