#pragma once
// Every algorithm of every convolution and fully connected layer of a network, or of one layer of any kind, measured in
// turns: which are worth having, not beaten in time, workspace and error together, and the fastest network that can be
// put together of them under limits.

#include <cstddef>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/io/text.h"
#include "bench/measure/row_key.h"
#include "bench/measure/session.h"
#include "lamina/layer_tuning.h"

namespace lamina::bench {

using Candidate = LayerTuning::Candidate;

/// An algorithm is deterministic if it is declared so and was not seen to give other bits.
bool is_deterministic(const Measurement&);

/// Of the limits count workspace, determinism and error, which is the measured one here.
bool within(const Measurement&, const Choice& limits);

/// The tuner's pick among the candidates within the limits.
LayerTuning::Picked pick_within(const LayerTuning&, const Choice& limits);

/// Whether `a` makes `b` pointless: needs no more workspace, errs no more, gives up no determinism, and is faster in
/// the rounds that both ran; or is tied with it in time and better in one of the others. An algorithm that left the
/// race is tied with none that stayed.
bool dominates(const Measurement& a, const Measurement& b);

/// By candidate: whether it ran and no other dominates it. Of equal ones that are tied, all stay.
std::vector<bool> not_beaten(const std::vector<Candidate>&);

struct FrontierOptions : TaskOptions {
  double max_measured_error = no_bound;  ///< largest error of a pick
};

struct FrontierLine {
  std::string node;  ///< the first of the layer's
  std::string op;    ///< "conv"
  int layers = 1;    ///< of the network: in backward_data, those whose gradient is wanted
  Cost work;
  std::string reason{};  ///< why the rule takes its algorithm, for people; empty: there is one only
  LayerTuning tuning;

  Pass pass() const { return tuning.pass; }
};

struct Frontier {
  Config config;
  std::vector<FrontierLine> lines;  ///< in order of the network, per layer forward, backward_data, backward_params
  std::size_t lines_in_all = 0;     ///< more than there are: the measuring was interrupted
  std::string cut_layer{};          ///< at which, its first node: not all of its passes are there; empty: at none

  bool complete() const { return cut_layer.empty(); }
};

/// How long measuring will take at half the peak, or 0 where that is not known. Slow algorithms come on top.
double guessed_seconds(Session&, const Config&, const TuningRules&);

/// Has every line tuned, each layer alone: what the tuner measures, with the error against sums in f64 and the bits
/// of each algorithm beside it. Limits decide only between what was measured. `progress` is called with each line
/// before it is measured. Interrupted, the run that has begun is finished, and the lines before are kept.
Frontier make_frontier(Session&, const Config&, const TuningRules&,
                       const std::function<void(const std::string&)>& progress);

/// The network of the fastest choices.
struct FastestNet {
  std::vector<LayerTuning::Picked> picks;            ///< by line: the tuner's, within the limits
  double forward_seconds = 0, backward_seconds = 0;  ///< of these layers, each as often as the network has it
  double by_rule_seconds = 0;        ///< of all passes by the backend's rule; 0: one of them was not measured
  std::vector<std::string> missing;  ///< lines for which nothing is within the limits
  bool as_by_rule = true;            ///< every pick is the rule's
};

FastestNet fastest_net(const Frontier&, const Choice& limits);

/// By node, the choice that the picks amount to.
std::map<std::string, Choice> choices_of(Session&, const Frontier&, const FastestNet&);

/// Why the network cannot be planned with these choices, with the layers that have no choice of algorithms and need
/// more workspace than the limit, or fail with any; empty where it can.
std::string why_not_planned(Session&, const Config&, const std::map<std::string, Choice>& choices);

/// The whole network planned with the picks and planned by rule, raced against each other.
struct WholeNet {
  Interval picked, by_rule;
  Interval ratio;           ///< of the picks' times over the rule's
  std::size_t samples = 0;  ///< of each; 0: it was interrupted, and there are no times
};
WholeNet time_whole(Session&, const Config&, const std::map<std::string, Choice>& choices, int samples);

/// A frontier as an entry of a result file, with every algorithm tried.
nlohmann::ordered_json frontier_json(const RowKey&, const Frontier&, const FastestNet&, const Choice& limits);

/// Prints the frontiers of all networks, backends and batches that the options name, as text or CSV, each when it is
/// measured. Of layers it prints every algorithm, those of all backends in one table. Interrupted, prints what there
/// is. Beside CSV, standard error says where there is no fastest network, or none that can be planned. Gives whether
/// any algorithm ran.
bool frontiers(Session&, const FrontierOptions&, const Print&);

}  // namespace lamina::bench
