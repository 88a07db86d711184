#pragma once
// The session of a subcommand: backends, graphs and plans as the settings ask for them, and the rates of backends.
// Networks by name: those of the zoo, and those of the ONNX files that the settings name.

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/machine/peaks.h"
#include "lamina/communicator.h"
#include "lamina/nets.h"

namespace lamina::bench {

/// A network on a backend, at one batch: rows and tables are made for each.
struct Config {
  std::string network;
  std::string backend;
  DType dtype = DType::f32;
  Layout layout = Layout::nchw;
  int batch = 16;
};

/// Every network on every backend at every batch of the settings, or at its layer's own batch, in this order. Throws
/// UsageError for an unknown network, and for several types or layouts.
std::vector<Config> configs(Backends&, const ConfigSettings&, const NetSettings&,
                            const std::vector<std::string>& networks);

/// "resnet50 on eigen, batch 16"
std::string to_string(const Config&);

/// The facts of a network before it is built.
struct Network {
  std::string name;
  std::string source;  ///< one line of provenance
  nets::Protocol protocol{};
  int image = 0, smallest_image = 0;            ///< rows and columns; 0: the file's own
  std::optional<std::filesystem::path> file{};  ///< file of a network that is read
  const Layer* layer = nullptr;                 ///< layer in the settings, for a network of one layer
};

/// Throws UsageError for a path in place of a network's name, with the flag that takes it.
void check_no_path(const std::string& name);

/// The network of this name. Throws UsageError for an unknown name, and for settings that a file has no use for.
Network network(const std::string& name, const NetSettings&);

/// The networks of the zoo or, with files, those of the files alone.
std::vector<Network> networks(const NetSettings&);

/// Takes away the files that cannot be read, each with a line on standard error. Returns whether there were any. Throws
/// Unsupported if none can be read.
bool leave_out_refused(NetSettings&, int batch);

/// Reads a file with this batch, which --batch gives. Takes the settings' extents that the file leaves open.
/// Throws what read_onnx throws, with flags in place of options in its texts, and UsageError for an extent that gives
/// another batch.
OnnxModel read_network_file(const std::filesystem::path& onnx, int batch, const OnnxOptions&);

/// A network's graph, for one rank's part of the batch. The zoo's networks have the softmax of their protocol, unless
/// the settings say otherwise. Throws UsageError if the ranks cannot share the batch evenly.
Graph graph_of(const Config&, const NetSettings&);

/// The name of a mode: "training" or "inference".
inline const char* mode_name(Mode mode) { return mode == Mode::training ? "training" : "inference"; }

class Plans {
 public:
  Plans(NetSettings net, PlanSettings settings);

  /// The published protocol, with the user's changes.
  nets::Protocol protocol(const std::string& network) const;
  Graph graph(const Config& config) const { return graph_of(config, net_); }
  /// The weights of a network that is read from a file; empty for the zoo's.
  TensorFile weights(const Config&) const;
  Options options(const Config&, Mode) const;
  Options options(const Config& c) const { return options(c, settings_.options.mode); }
  bool trains() const { return settings_.options.mode == Mode::training; }
  const Choice& choice() const { return settings_.options.choice; }

 private:
  NetSettings net_;
  PlanSettings settings_;  ///< settings, with the one tuner of all plans that measure, so that its file is read once
};

struct Session {
  explicit Session(const PlanningSettings& settings = {}, MakeBackend make = make_backend)
      : backends(settings.backends, std::move(make)), plans(settings.net, settings.plan), peaks(backends) {}
  Session(const Session&) = delete;  // peaks point to the backends

  Backends backends;
  Plans plans;
  Peaks peaks;
  Communicator* ranks = nullptr;  ///< ranks of the run; null: there is one
};

struct LargestBatch {
  int batch = 0;  ///< largest batch; 0: not even one image fits
  std::size_t bytes = 0;
  bool at_least = false;  ///< whether larger batches were not tried
};

/// The memory that a network would take at any batch.
struct MemoryPredictor {
  Session& session;
  Config config;  ///< network and backend; its batch does not count
  Mode mode;
  std::optional<Optimiser> optimiser{};  ///< optimiser whose state training has; none: parameters are not updated

  Options options() const;           ///< options of the plan that is predicted
  MemoryReport at(int batch) const;  ///< throws what predict_memory throws
  LargestBatch largest_under(std::size_t limit) const;
};

}  // namespace lamina::bench
