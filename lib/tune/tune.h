#pragma once
// The one tuner: every algorithm of a unit's pass measured in a race, and which is taken. What Backend::measure answers
// and what a frontier reports are the same data.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lamina/backend.h"
#include "race.h"

namespace lamina {

/// What was measured of one algorithm for one pass, beside what it declares.
struct Measurement {
  Rounds seconds;             ///< by round; of one that was hopeless, of its only run
  bool finished = false;      ///< it ran as many rounds as the one that was taken
  bool of_one_image = false;  ///< it ran on one image only: the time by the batch, all else of that
  std::size_t workspace_bytes = 0;
  bool deterministic = true;           ///< as declared
  Math math = Math::strict;            ///< as declared
  double guaranteed_error = no_bound;  ///< as declared
  double error = no_bound;             ///< as seen by who looked, and so are the next two
  int runs_compared = 0;
  bool same_bits = true;
};

/// What was measured of one unit and pass.
struct LayerTuning {
  struct Candidate {
    std::string algorithm;
    bool by_rule = false;      ///< what would be taken without a measurement
    std::string refused{};     ///< why it cannot run here, or nothing
    bool unsupported = false;  ///< and that is rightly so: it can never do the unit under the limits
    Measurement measured{};

    bool ran() const { return !measured.seconds.empty(); }
  };

  /// Which candidate is taken, and which others it did not win against, so that noise decided.
  struct Picked {
    std::optional<std::size_t> best{};  ///< nothing: none is admitted
    std::vector<std::size_t> ties{};
  };

  Spec spec;
  Pass pass;
  std::vector<Candidate> candidates{};  ///< the rule's pick first
  Picked picked{};                      ///< among all of them
};

/// The winner among the candidates that are admitted and ran to the end, or else the one with the least median.
LAMINA_API LayerTuning::Picked pick(const std::vector<LayerTuning::Candidate>&,
                                    const std::function<bool(const LayerTuning::Candidate&)>& admitted);

struct TuningRules {
  RaceRules race{};
  double longest_seconds = 1;          ///< of one run of an algorithm that is ten times as slow on one image
  std::string rule{};                  ///< the algorithm that counts as the rule's pick; empty: the backend's
  std::vector<std::string> further{};  ///< algorithms to try besides those that the backend lists
  bool even_alone = false;             ///< measure where there is no choice
  std::function<void()> before_run{};  ///< may throw, which ends the tuning
  /// Looks at the results of a candidate after its first run and after some further ones, outside of what is timed,
  /// with the unit that ran: of one image, where that is all that runs.
  std::function<void(LayerTuning::Candidate&, const Spec&, const Args&)> look{};
};

/// Times every algorithm that the backend knows for the pass of the unit and does not refuse under the choice's limits,
/// in memory that is lent, on the same numbers, with the betas of the unit, between two marks of the device's timer.
/// The other passes run as the choice says: by rule, or by name. An algorithm that does not fit into the memory takes
/// no part; one that throws Unsupported or OutOfMemory while it runs is out. Of a batch each runs on one image first:
/// one that is ten times as slow there, and would take longer than the rules allow, does not run on the batch.
LAMINA_API LayerTuning tune(Backend&, const Spec&, Pass, const Choice&, void* lent, std::size_t lent_bytes,
                            const TuningRules& = {});

/// The bytes that tune() needs for each of the algorithms that the backend does not refuse, ascending.
LAMINA_API std::vector<std::size_t> bytes_to_tune(Backend&, const Spec&, Pass, const Choice&);

/// Looks at what a timed run left, outside of what is timed: after the first run, and after each further one that is
/// not short. Looking would disturb a short run that comes after it: so right after the first, three more are run and
/// looked at at once, and then the device is warmed up again.
LAMINA_API void look_at_run(Device&, bool first, double seconds, const std::function<void()>& run,
                            const std::function<void()>& look);

/// Backend::measure, for every pass of the unit that `choice` leaves open.
///
/// The answer names an algorithm for each pass that the unit has. A unit that has one algorithm for every open pass is
/// answered at once, without names. Throws Unsupported where the rule's pick does not fit into `lent`, and where
/// nothing is left to be taken. `seen` receives what was seen of each open pass.
MeasuredChoice measure_in_turns(Backend&, const Spec&, const Choice&, void* lent, std::size_t lent_bytes,
                                const std::function<void(LayerTuning)>& seen = {});

/// Whether a pass is open for which the backend knows more than one algorithm.
bool leaves_open(const Backend&, const Spec&, const Choice&);

}  // namespace lamina
