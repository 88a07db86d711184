#pragma once
// Algorithms picked by timing: the tuner of a plan; the race of one unit's algorithms; the race of any candidates;
// measured choices, kept in a JSON file.

#include <array>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lamina/api.h"
#include "lamina/backend.h"
#include "lamina/statistics.h"

namespace lamina {

/// A tuner for Options::tuner. For each pass it times the algorithms that a choice leaves open, in turns. With a file,
/// measurements are kept there (ChoiceCache) and not repeated. Throws FileError if the file exists and cannot be read.
/// measure() throws FileError if the file cannot be written, and Unsupported if no algorithm can run. One thread at a
/// time.
LAMINA_API std::shared_ptr<Tuner> make_tuner(const std::filesystem::path& choice_cache = {});

/// Seconds of one candidate, by round: a candidate that leaves a race has no further rounds.
using Rounds = std::vector<double>;

struct RaceRules {
  std::size_t rounds = 9;  ///< most rounds
  double seconds = 10;     ///< limit of all times; beyond it the race ends, but not before `fewest_samples` rounds
};

/// The times of one candidate.
struct Raced {
  double warm_up_seconds = 0;
  Rounds rounds;
  bool finished = false;  ///< whether it stayed to the end
};

/// Times the candidates in turns (A B C, C B A, ...), so that a slow drift of the machine favours none. One round to
/// warm up comes first. `time(i)` returns seconds, or nothing if the candidate cannot run: it then has no rounds.
///
/// The first candidate stays, since it would be taken without a race. Any other leaves when it is clearly slower:
/// - its warm-up took over 10 ms and over four times the shortest warm-up; or
/// - after at least three rounds, its whole interval is above twice the interval of the least median.
///
/// After `fewest_samples` rounds the race ends if only one candidate is left.
LAMINA_API std::vector<Raced> race(std::size_t candidates,
                                   const std::function<std::optional<double>(std::size_t)>& time,
                                   const RaceRules& = {});

/// Whether the challenger is faster by more than `factor`: the whole interval of the ratio of their paired rounds says
/// so. A challenger that ran fewer rounds than the leader does not win.
LAMINA_API bool beats(const Rounds& challenger, const Rounds& leader, double factor = 1);

/// The candidate to take. The first candidate leads until another beats it, and so on: if a difference is noise, the
/// earlier candidate is taken. Needs at least one candidate.
LAMINA_API std::size_t winner(const std::vector<Rounds>&, double factor = 1);

/// The measurements of one algorithm for one pass, and what it declares.
struct Measurement {
  Rounds seconds;             ///< times by round; a clearly slower candidate may have a single run
  bool finished = false;      ///< whether it ran to the end of the race
  bool of_one_image = false;  ///< whether it ran on one image only; `seconds` is multiplied by the batch
  std::size_t workspace_bytes = 0;
  bool deterministic = true;           ///< whether it declares the same bits on every run
  Math math = Math::strict;            ///< declared math
  double guaranteed_error = no_bound;  ///< declared bound on the error
  double error = no_bound;             ///< measured error; TuningRules::look sets it and the next two
  int runs_compared = 0;
  bool same_bits = true;
};

/// The measurements of one unit and pass.
struct LayerTuning {
  struct Candidate {
    std::string algorithm;
    bool by_rule = false;      ///< whether the backend takes it when nothing is measured
    std::string refused{};     ///< reason why it cannot run here; empty: it can
    bool unsupported = false;  ///< whether it can never do the unit under these limits
    bool failed = false;       ///< whether the device's library failed in it, and the device still works
    Measurement measured{};

    bool ran() const { return !measured.seconds.empty(); }
  };

  /// The candidate to take, and its ties: the candidates that it did not beat beyond the noise.
  struct Picked {
    std::optional<std::size_t> best{};  ///< index of the candidate; nothing: none is admitted
    std::vector<std::size_t> ties{};
  };

  Spec spec;
  Pass pass;
  std::vector<Candidate> candidates{};  ///< candidates, the rule's pick first
  Picked picked{};                      ///< pick among all candidates
};

/// The winner among the admitted candidates that ran to the end. If none did, the admitted candidate with the least
/// median.
LAMINA_API LayerTuning::Picked pick(const std::vector<LayerTuning::Candidate>&,
                                    const std::function<bool(const LayerTuning::Candidate&)>& admitted);

struct TuningRules {
  RaceRules race{};
  double longest_seconds = 1;          ///< limit on a run on the batch, for an algorithm that is slow on one image
  std::string rule{};                  ///< algorithm that counts as the rule's pick; empty: the backend's
  std::vector<std::string> further{};  ///< algorithms to try besides those that the backend lists
  bool even_alone = false;             ///< whether to measure a candidate that is the only one
  std::function<void()> before_run{};  ///< called before a timed run; may throw, which ends the tuning
  /// Looks at the results of a candidate, outside the timed part: after its first run and after some later runs. It
  /// gets the unit that ran, which may be the unit of one image.
  std::function<void(LayerTuning::Candidate&, const Spec&, const Args&)> look{};
};

/// Times the algorithms for this pass of the unit, except those that the backend refuses under the choice's limits. All
/// run in one buffer, on the same numbers, with the betas of the unit, between two marks of the device's timer. The
/// other passes run as the choice says: by rule, or by name. An algorithm that does not fit into the memory takes no
/// part. Nor does an algorithm that throws Unsupported, UsageError or OutOfMemory while it runs, or DeviceError if the
/// device still works. For a batch, each algorithm runs on one image first. An algorithm that is ten times as slow
/// there as the fastest, and would take longer than the rules allow, does not run on the batch, unless the rule picks
/// it.
LAMINA_API LayerTuning tune(Backend&, const Spec&, Pass, const Choice&, void* buffer, std::size_t buffer_bytes,
                            const TuningRules& = {});

/// The bytes that tune() needs for each of the algorithms that the backend does not refuse, ascending.
LAMINA_API std::vector<std::size_t> bytes_to_tune(Backend&, const Spec&, Pass, const Choice&);

/// Looks at the results of a timed run, outside the timed part. Every run that is not short gets a look. A look
/// disturbs a short run after it. So right after the first short run, untimed runs get looks until there are four
/// looks, including the `looked` earlier ones. Later short runs get no look. After the looks of a short run, and after
/// the first look, the device is warmed up again.
LAMINA_API void inspect_timed_run(Device&, int looked, double seconds, const std::function<void()>& run,
                                  const std::function<void()>& look);

// ---- Measured choices. The key of a choice is everything that the measurement depended on. ----

/// What a measured choice is valid for. Equal keys have equal choices.
struct ChoiceKey {
  std::string backend;  ///< Backend::name()
  std::string device;   ///< Device::describe()
  std::string version;  ///< version of this library, and Backend::describe()
  std::string unit;     ///< to_string(Spec): op, shapes, layouts, element types, betas
  Choice asked{};       ///< the caller's choice without `measure` and `joins_gradients`; an empty algorithm is left
                        ///< open
  bool operator==(const ChoiceKey&) const = default;
};

/// The key of a measurement on the backend's device. Reads the device's description (DeviceError if there is no
/// device).
LAMINA_API ChoiceKey choice_key(Backend&, const Spec&, const Choice& asked);

/// One line. Only equal keys have equal lines.
LAMINA_API std::string to_string(const ChoiceKey&);

/// The algorithms chosen: forward, backward_params, backward_data; empty for a pass that was not measured.
using Algorithms = std::array<std::string, 3>;

/// A file of measured choices, in memory. Several processes may share the file: saving keeps the choices that others
/// saved, under a lock of the folder, and replaces the file atomically. Not thread-safe.
class LAMINA_API ChoiceCache {
 public:
  struct Entry {
    ChoiceKey key;
    Algorithms algorithms;
  };

  /// Reads the file. A missing file is an empty cache. A file in an earlier version of the format counts as missing;
  /// the first save() replaces it. Throws FileError, naming file and entry: unreadable, not a regular file, not JSON,
  /// not of this format, of a later version of the format, a repeated key.
  explicit ChoiceCache(std::filesystem::path file);

  std::optional<Algorithms> find(const ChoiceKey&) const;
  void remember(const ChoiceKey&, const Algorithms&);  ///< adds to the memory only; replaces an older entry

  /// Throws FileError as the constructor does, and if the file cannot be written; the file is then unchanged.
  void save() const;

  /// Takes the algorithms that `asked` leaves open from the file, or else calls `measure`. The measured answer is
  /// remembered and also saved, unless the file or its folder is read-only. An entry that names an algorithm unknown to
  /// the backend for this unit is measured again.
  MeasuredChoice find_or_measure(Backend&, const Spec&, const Choice& asked,
                                 const std::function<MeasuredChoice()>& measure);

  /// Algorithms by the text of their keys.
  const std::map<std::string, Entry>& entries() const { return entries_; }
  const std::filesystem::path& file() const { return file_; }

 private:
  std::filesystem::path file_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, Entry> fresh_;  ///< the entries that `remember` added
};

}  // namespace lamina
