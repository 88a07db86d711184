#pragma once
// Every algorithm of every convolution and fully connected layer of a network, measured in turns: which are worth
// having, and the fastest network that can be put together of them under limits.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/print.h"
#include "measure/cases.h"
#include "measure/layer_run.h"
#include "measure/workshop.h"
#include "pareto.h"

namespace lamina::bench {

/// One algorithm for one pass of one layer.
struct Tried {
  std::string algorithm;
  std::vector<double> seconds{};  ///< one sample: so slow that it was not asked again; none: it could not run
  bool of_one_image = false;      ///< so slow that it ran on one image only: time by the batch, bits and error of that
  LayerFacts facts{};
  std::string refusal{};     ///< why it could not run
  bool unsupported = false;  ///< and that is rightly so
  bool by_rule = false;      ///< what the backend takes unless told

  bool ran() const { return !seconds.empty(); }
  /// Deterministic is what is declared so and was not seen to be otherwise. Needs ran().
  Offer offer() const;
};

struct FrontierLine {
  std::string node;  ///< the first of the layer's
  int layers = 1;    ///< of the network: in backward_data, those whose gradient is wanted
  Pass pass = Pass::forward;
  Cost work;
  std::vector<Tried> tried;

  /// Those that ran, and their places in `tried`.
  std::vector<Offer> offers() const;
  std::vector<std::size_t> ran() const;
};

struct Frontier {
  Case facts;
  std::vector<FrontierLine> lines;  ///< in order of the network, per layer forward, backward_data, backward_params
  std::size_t lines_in_all = 0;     ///< more than there are: the measuring was interrupted
  std::string cut_layer{};          ///< at which, its first node: not all of its passes are there; empty: at none

  bool complete() const { return cut_layer.empty(); }
};

struct FrontierEffort {
  int samples = 7;             ///< six are the fewest with an interval of 95 %
  double longest_seconds = 5;  ///< of a run of an algorithm that is far behind
};

/// How long measuring will take at half the peak, or 0 where that is not known. Slow algorithms come on top.
double guessed_seconds(Workshop&, const Case&, const FrontierEffort&);

/// Measures. Each algorithm runs once to warm up; one that takes more than ten times as long as the fastest has that
/// run as its only sample, and where a run on one image says that it would and be longer than the longest, it is not
/// run on the batch. The others take turns, first to last and last to first, for as many samples as asked; where the
/// device has no room for the plans of all of a line's algorithms, each turn makes its plan anew. `progress` is told of
/// each line before it is measured. Interrupted, the pass that runs is finished, and the lines before are kept.
Frontier make_frontier(Workshop&, const Case&, const FrontierEffort&,
                       const std::function<void(const std::string&)>& progress);

/// The fastest choice of a line under limits.
struct Picked {
  std::optional<std::size_t> best{};  ///< in `tried`; nothing: none is within the limits
  std::vector<std::size_t> ties{};
};

Picked pick_fastest(const FrontierLine&, const Limits&);

/// The network of the fastest choices.
struct FastestNet {
  std::vector<Picked> picks;                         ///< by line
  double forward_seconds = 0, backward_seconds = 0;  ///< of these layers, each as often as the network has it
  double by_rule_seconds = 0;        ///< of all passes by the backend's rule; 0: one of them was not measured
  std::vector<std::string> missing;  ///< lines for which nothing is within the limits
  bool as_by_rule = true;            ///< every pick is the rule's
};

FastestNet fastest_net(const Frontier&, const Limits&);

/// By node, the choice that the picks amount to.
std::map<std::string, Choice> choices_of(Workshop&, const Frontier&, const FastestNet&);

/// Why the network cannot be planned with these choices, with the layers that have no choice of algorithms and need
/// more workspace than the limit, or fail with any; empty where it can.
std::string why_not_planned(Workshop&, const Case&, const std::map<std::string, Choice>& choices);

/// The whole network planned with the picks and planned by rule, passes in turns; medians of forward and backward.
struct WholeNet {
  Interval picked, by_rule;
  int samples = 0;  ///< of each: fewer than asked where it was interrupted; 0: there are no times
};
WholeNet time_whole(Workshop&, const Case&, const std::map<std::string, Choice>& choices, int samples);

/// Adds the picks to a file that --choices reads, and tells for how many layers there are any; of the layer at which
/// measuring was interrupted there is none, and without any the file is left alone. Throws FileError.
std::size_t save_choices(Workshop&, const Frontier&, const FastestNet&, const std::filesystem::path& file);

/// Prints the frontiers of all networks, backends and batches that the options name, as text or CSV, each when it is
/// measured, and then adds its choices to --choices_out. Interrupted, prints what there is. Beside CSV, standard error
/// is told where there is no fastest network, or none that can be planned.
void frontiers(Workshop&, const FrontierOptions&, const Print&);

}  // namespace lamina::bench
