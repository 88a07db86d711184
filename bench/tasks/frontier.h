#pragma once
// Every algorithm of every convolution and fully connected layer of a network, or of one layer of any kind, measured in
// turns: the algorithms that are not beaten in time, workspace and error together, and the fastest network that they
// make under limits.

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bench/measure/row_key.h"
#include "lamina/tuning.h"

namespace lamina::bench {

using Candidate = LayerTuning::Candidate;

/// Whether the algorithm is deterministic: it is declared so, and never gave other bits.
bool is_deterministic(const Measurement&);

/// Whether the algorithm keeps the limits of workspace, determinism and error. The error is the measured one here.
bool within(const Measurement&, const Choice& limits);

/// The tuner's pick among the candidates within the limits.
LayerTuning::Picked pick_within(const LayerTuning&, const Choice& limits);

/// Whether `a` makes `b` pointless: needs no more workspace, errs no more, gives up no determinism, and is faster in
/// the rounds that both ran; or is tied with it in time and better in another respect. An algorithm that left the race
/// is tied with none that stayed.
bool dominates(const Measurement& a, const Measurement& b);

/// By candidate: whether it ran and no other candidate dominates it. Equal candidates that are tied all stay.
std::vector<bool> not_beaten(const std::vector<Candidate>&);

struct FrontierOptions : TaskOptions {
  double max_measured_error = no_bound;  ///< largest error of a pick
};

struct FrontierLine {
  std::string node;  ///< first node of the layer
  std::string op;    ///< "conv"
  int layers = 1;    ///< number of such layers; in backward_data only those whose gradient is wanted
  Cost work;
  std::string reason{};  ///< reason why the rule takes its algorithm, for people; empty: there is only one
  LayerTuning tuning;

  Pass pass() const { return tuning.pass; }
};

struct Frontier {
  Config config;
  std::vector<FrontierLine> lines;  ///< lines in network order, per layer forward, backward_data, backward_params
  std::size_t lines_in_all = 0;     ///< number of lines to measure; more than `lines`: it was interrupted
  std::string cut_layer{};          ///< first node of a layer whose passes are not all there; empty: none

  bool complete() const { return cut_layer.empty(); }
};

/// The seconds that measuring will take at half the peak, or 0 if that is not known. Slow algorithms take longer.
double guessed_seconds(Session&, const Config&, const TuningRules&);

/// Tunes every line, each layer alone: the tuner's measurements, with the error against sums in f64 and the bits of
/// each algorithm. Limits decide only between what was measured. `progress` is called with each line before it is
/// measured. After an interrupt the present run is finished, and the lines before are kept.
Frontier make_frontier(Session&, const Config&, const TuningRules&,
                       const std::function<void(const std::string&)>& progress);

/// The network of the fastest choices.
struct FastestNet {
  std::vector<LayerTuning::Picked> picks;            ///< the tuner's picks within the limits, by line
  double forward_seconds = 0, backward_seconds = 0;  ///< times of these layers, each as often as in the network
  double by_rule_seconds = 0;        ///< time of all passes by the backend's rule; 0: a pass was not measured
  std::vector<std::string> missing;  ///< lines without a candidate within the limits
  bool as_by_rule = true;            ///< whether every pick is the rule's
};

FastestNet fastest_net(const Frontier&, const Choice& limits);

/// The choices of the picks, by node.
std::map<std::string, Choice> choices_of(Session&, const Frontier&, const FastestNet&);

/// Why the network cannot be planned with these choices, with the layers that have no choice of algorithms and need
/// more workspace than the limit, or fail with any; empty: it can be planned.
std::string why_not_planned(Session&, const Config&, const std::map<std::string, Choice>& choices);

/// The whole network planned with the picks and planned by rule, raced against each other.
struct WholeNet {
  Interval picked, by_rule;
  Interval ratio;           ///< ratio of the picks' times to the rule's
  std::size_t samples = 0;  ///< samples of each; 0: it was interrupted, and there are no times
};
WholeNet time_whole(Session&, const Config&, const std::map<std::string, Choice>& choices, int samples);

/// Prints the frontiers of all networks, backends and batches that the options name, as text or CSV, each when it is
/// measured. For layers it prints every algorithm, all backends in one table. After an interrupt it prints the finished
/// part. Beside CSV, standard error says where there is no fastest network, or none that can be planned. Gives whether
/// any algorithm ran.
bool frontiers(Session&, const FrontierOptions&, const Print&);

}  // namespace lamina::bench
