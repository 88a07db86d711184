#pragma once
// The one tuner: it measures every algorithm of a unit's pass in a race, and picks one. Tuner::measure and the
// frontier use the same data.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lamina/backend.h"
#include "lamina/race.h"

namespace lamina {

/// What was measured of one algorithm for one pass, beside what it declares.
struct Measurement {
  Rounds seconds;             ///< by round; of one that was clearly slower, of its only run
  bool finished = false;      ///< it ran to the end of the race
  bool of_one_image = false;  ///< it ran on one image only: the time is that times the batch, all else is of the image
  std::size_t workspace_bytes = 0;
  bool deterministic = true;           ///< as declared
  Math math = Math::strict;            ///< as declared
  double guaranteed_error = no_bound;  ///< as declared
  double error = no_bound;             ///< as measured by TuningRules::look, like the next two
  int runs_compared = 0;
  bool same_bits = true;
};

/// What was measured of one unit and pass.
struct LayerTuning {
  struct Candidate {
    std::string algorithm;
    bool by_rule = false;      ///< the backend takes it when nothing is measured
    std::string refused{};     ///< why it cannot run here, or nothing
    bool unsupported = false;  ///< it can never do the unit under these limits
    bool failed = false;       ///< by an error of the device's library, after which the device still works
    Measurement measured{};

    bool ran() const { return !measured.seconds.empty(); }
  };

  /// The candidate to take, and those that it did not beat: between them noise decided.
  struct Picked {
    std::optional<std::size_t> best{};  ///< nothing: none is admitted
    std::vector<std::size_t> ties{};
  };

  Spec spec;
  Pass pass;
  std::vector<Candidate> candidates{};  ///< the rule's pick first
  Picked picked{};                      ///< among all of them
};

/// The winner among the admitted candidates that ran to the end. If there are none, the one with the least median.
LAMINA_API LayerTuning::Picked pick(const std::vector<LayerTuning::Candidate>&,
                                    const std::function<bool(const LayerTuning::Candidate&)>& admitted);

struct TuningRules {
  RaceRules race{};
  double longest_seconds = 1;          ///< of one run of an algorithm that is ten times as slow on one image
  std::string rule{};                  ///< the algorithm that is taken as the rule's pick; empty: the backend's
  std::vector<std::string> further{};  ///< algorithms to try besides those that the backend lists
  bool even_alone = false;             ///< measure where there is no choice
  std::function<void()> before_run{};  ///< may throw, which ends the tuning
  /// Looks at the results of a candidate after its first run and after some further ones, outside the timed part, with
  /// the unit that ran. That is the unit of one image if nothing else runs.
  std::function<void(LayerTuning::Candidate&, const Spec&, const Args&)> look{};
};

/// Times every algorithm that the backend knows for the pass of the unit and does not refuse under the choice's limits:
/// in a buffer, on the same numbers, with the betas of the unit, between two marks of the device's timer. The other
/// passes run as the choice says: by rule, or by name. An algorithm that does not fit into the memory takes no part;
/// one that throws Unsupported or OutOfMemory while it runs is out, and so is one that throws DeviceError and leaves a
/// device that works. For a batch, each runs on one image first. One that is ten times as slow there, and would take
/// longer than the rules allow, does not run on the batch.
LAMINA_API LayerTuning tune(Backend&, const Spec&, Pass, const Choice&, void* buffer, std::size_t buffer_bytes,
                            const TuningRules& = {});

/// The bytes that tune() needs for each of the algorithms that the backend does not refuse, ascending.
LAMINA_API std::vector<std::size_t> bytes_to_tune(Backend&, const Spec&, Pass, const Choice&);

/// Looks at the results of a timed run, outside the timed part: of four runs at least, and of each that is not short. A
/// look disturbs a short run after it. So right after the first short one, others are run and looked at until four have
/// been, `looked` of them before, and then the device is warmed up again.
LAMINA_API void inspect_timed_run(Device&, int looked, double seconds, const std::function<void()>& run,
                                  const std::function<void()>& look);

}  // namespace lamina
