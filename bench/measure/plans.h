#pragma once
// Graphs and the options of their plans, as the settings ask for them.

#include <map>
#include <optional>
#include <set>
#include <string>

#include "bench/machine/backends.h"
#include "config.h"
#include "lamina/choice_cache.h"
#include "lamina/nets.h"
#include "networks.h"

namespace lamina::bench {

/// "training" or "inference".
inline const char* mode_name(Mode mode) { return mode == Mode::training ? "training" : "inference"; }

class Plans {
 public:
  Plans(NetSettings net, PlanSettings settings, Backends& backends);

  /// As published, but for what the user set.
  nets::Protocol protocol(const std::string& network) const;
  Graph graph(const Config& config) const { return graph_of(config, net_); }
  /// The weights of a network that is read from a file; empty for the zoo's.
  TensorFile weights(const Config& config) const { return stored_weights(config, net_); }
  /// With the choices of the file that the settings name; how many of them hold is printed on standard error, once for
  /// each network, backend and batch. Throws FileError, and UsageError where it has none for the network on this
  /// backend and device.
  Options options(const Config&, Mode);
  Options options(const Config& c) { return options(c, settings_.mode); }
  bool trains() const { return settings_.mode == Mode::training; }
  const Choice& choice() const { return settings_.choice; }
  void set_algorithms(const Algorithms& names) { settings_.choice.algorithm = names; }  ///< of whole networks

 private:
  std::map<std::string, Choice> saved_choices(const Config&);

  NetSettings net_;
  PlanSettings settings_;
  Backends* backends_;
  std::optional<ChoiceCache> choices_;  ///< of the file, once it was read
  std::set<std::string> said_;          ///< of the file, on standard error
};

}  // namespace lamina::bench
