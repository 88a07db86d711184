#pragma once
// Measures in turns every algorithm of every convolution and fully connected layer of a network, or of one layer of any
// kind. Finds the algorithms that no other beats in time, workspace, error and determinism, and the fastest network
// under limits.

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/measure/row_key.h"
#include "lamina/tuning.h"

namespace lamina::bench {

using Candidate = LayerTuning::Candidate;

/// Whether the algorithm is declared deterministic, and gave the same bits in all runs.
bool is_deterministic(const Measurement&);

/// Whether the algorithm keeps the limits of workspace, determinism and error. The limit of the error is compared with
/// the measured error.
bool within(const Measurement&, const Choice& limits);

/// The tuner's pick among the candidates within the limits.
LayerTuning::Picked pick_within(const LayerTuning&, const Choice& limits);

/// Whether `a` makes `b` pointless. `a` must not be worse in workspace, error and determinism. It must be faster in the
/// rounds that both ran, or tied in time and better in workspace, error or determinism. An algorithm that left the race
/// counts as slower than an algorithm that stayed.
bool dominates(const Measurement& a, const Measurement& b);

/// For each candidate, whether it ran and no other candidate dominates it. Of equal candidates that are tied, all stay.
std::vector<bool> not_beaten(const std::vector<Candidate>&);

struct FrontierOptions : TaskOptions {
  double max_measured_error = no_bound;  ///< largest error of a pick
};

struct FrontierLine {
  std::string node;  ///< first node of the layer
  std::string op;    ///< "conv"
  int layers = 1;    ///< number of such layers; for backward_data only layers whose gradient is needed
  Cost work;
  std::string reason{};  ///< human-readable reason for the rule's choice; empty: there is only one algorithm
  LayerTuning tuning;

  Pass pass() const { return tuning.pass; }
};

struct Frontier {
  Config config;
  std::vector<FrontierLine> lines;  ///< lines in network order; of a layer: forward, backward_data, backward_params
  std::size_t lines_in_all = 0;     ///< number of lines to measure; `lines` has fewer after an interrupt
  std::string cut_layer{};          ///< first node of the layer that was interrupted; empty: all lines are measured

  bool complete() const { return cut_layer.empty(); }
};

/// The seconds that measuring takes if all algorithms run at half the peak; 0: the peak is not known.
double guessed_seconds(Session&, const Config&, const TuningRules&);

/// Measures every line with the tuner, each layer as a network of its own. Also compares each algorithm's result with
/// sums in f64, and its bits between runs. Limits other than the math apply only after measuring. `progress` gets the
/// title of each line before it is measured. After an interrupt the running pass is finished, and earlier lines are
/// kept.
Frontier make_frontier(Session&, const Config&, const TuningRules&,
                       const std::function<void(const std::string&)>& progress);

/// The network of the fastest choices.
struct FastestNet {
  std::vector<LayerTuning::Picked> picks;            ///< the tuner's picks within the limits, by line
  double forward_seconds = 0, backward_seconds = 0;  ///< sums of the picks' times, each as often as in the network
  double by_rule_seconds = 0;        ///< time of all passes by the backend's rule; 0: a pass was not measured
  std::vector<std::string> missing;  ///< lines without a candidate within the limits
  bool as_by_rule = true;            ///< whether every pick is also the rule's choice
};

FastestNet fastest_net(const Frontier&, const Choice& limits);

/// {name of a node: choice with the picked algorithms}.
std::map<std::string, Choice> choices_of(Session&, const Frontier&, const FastestNet&);

/// The reason why the network cannot be planned with these choices. It names the layers without measured algorithms
/// that need more workspace than the limit, or fail with any workspace. Empty: the network can be planned.
std::string why_not_planned(Session&, const Config&, const std::map<std::string, Choice>& choices);

/// The times of the whole network, planned with the picks and planned by rule. Both plans took turns.
struct WholeNet {
  Interval picked, by_rule;
  Interval ratio;           ///< ratio of the picks' time to the rule's time
  std::size_t samples = 0;  ///< number of samples of each plan; 0: there are no times, because of an interrupt
};
WholeNet time_whole(Session&, const Config&, const std::map<std::string, Choice>& choices, int samples);

/// Prints the frontiers of all networks, backends and batches of the options, as text or CSV, each when it is measured.
/// For single layers, prints every algorithm, with all backends in one table. After an interrupt, prints the finished
/// part. With CSV, standard error has the reason if there is no fastest network, or if it cannot be planned. Gives
/// whether any algorithm ran.
bool frontiers(Session&, const FrontierOptions&, const Print&);

}  // namespace lamina::bench
