#pragma once
// What a subcommand measures with: backends, graphs and plans as the settings ask for them, and what
// backends reach.

#include <memory>
#include <string>
#include <utility>

#include "bench/machine/backends.h"
#include "bench/machine/peaks.h"
#include "lamina/communicator.h"
#include "lamina/nets.h"
#include "networks.h"

namespace lamina::bench {

/// "training" or "inference".
inline const char* mode_name(Mode mode) { return mode == Mode::training ? "training" : "inference"; }

class Plans {
 public:
  Plans(NetSettings net, PlanSettings settings);

  /// As published, but for what the user set.
  nets::Protocol protocol(const std::string& network) const;
  Graph graph(const Config& config) const { return graph_of(config, net_); }
  /// The weights of a network that is read from a file; empty for the zoo's.
  TensorFile weights(const Config& config) const { return stored_weights(config, net_); }
  Options options(const Config&, Mode) const;
  Options options(const Config& c) const { return options(c, settings_.mode); }
  bool trains() const { return settings_.mode == Mode::training; }
  const Choice& choice() const { return settings_.choice; }

 private:
  NetSettings net_;
  PlanSettings settings_;
  std::shared_ptr<Tuner> tuner_{};  ///< of all plans, so that its file is read once; null: none measures
};

struct Session {
  explicit Session(const PlanningSettings& settings = {}, MakeBackend make = make_backend)
      : backends(settings.backends, std::move(make)), plans(settings.net, settings.plan), peaks(backends) {}
  Session(const Session&) = delete;  // peaks point to the backends

  Backends backends;
  Plans plans;
  Peaks peaks;
  Communicator* ranks = nullptr;  ///< null: one, which is alone
};

}  // namespace lamina::bench
