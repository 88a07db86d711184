#pragma once
// Choices by timing: what backends whose algorithms have a rule's order make of Backend::measure.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lamina/backend.h"
#include "lamina/choice_cache.h"

namespace lamina {

/// What a race saw of one contestant: seconds per round, and only as many as it took part in.
using Rounds = std::vector<double>;

/// Which of the contestants is to be taken; the first is the rule's pick, the others stand in the rule's order. The
/// first one leads until another wins against it, which means that it stayed to the end, was the faster one in all
/// rounds but `lost_rounds` at most, and has the lower median; and so on with the others. Thus what differs by less
/// than the noise is left to the rule.
std::size_t winner(const std::vector<Rounds>&);

/// What a race saw of one algorithm for one pass.
struct Timing {
  std::string algorithm;
  Rounds rounds;
  std::size_t workspace_bytes = 0;
  bool tied = false;      ///< not the one that was taken, which did not win against it: between them noise decides
  std::string refused{};  ///< why it cannot run here, or nothing
};

/// What a race saw of one unit and pass.
struct Measured {
  Spec spec;
  Pass pass;
  std::vector<Timing> timings;  ///< the one that was taken, the others that came to the end, that stopped, the refused

  bool refused(const std::string& algorithm) const;
};

constexpr std::size_t race_rounds = 9;
constexpr std::size_t lost_rounds = 1;  ///< of 9: equals win against each other once in fifty races

/// Times, per pass of the unit that `choice` leaves open, every algorithm that the backend knows for it and does not
/// refuse under the choice's limits. They run in `lent` on the same numbers, with the betas of the unit, in turns
/// (A B C, C B A, ...) of `race_rounds` rounds behind one to warm up, between two marks of the device's timer. What
/// takes four times as long as the fastest, and over 10 ms, runs no further.
///
/// The answer names an algorithm for each pass that the unit has. A unit that has one algorithm for every open pass is
/// answered at once, without names. Throws Unsupported where the rule's pick does not fit into `lent`, and where
/// nothing is left to be taken; another one that does not fit takes no part, and one that throws Unsupported or
/// OutOfMemory while it runs, which may be the rule's pick, is out. `seen` receives what was seen of each open pass.
MeasuredChoice measure_in_turns(Backend&, const Spec&, const Choice&, void* lent, std::size_t lent_bytes,
                                const std::function<void(Measured)>& seen = {});

/// Measurement by the same way, and what came of it kept in a file, so that it is measured once on a machine.
class MeasuredChoices {
 public:
  /// Reads the file, if one is named. Throws FileError, as ChoiceCache does.
  explicit MeasuredChoices(const std::string& file);

  /// The file's choice, or the one measured in turns, which is added to the file. What needs no measurement is in no
  /// file.
  MeasuredChoice measure(Backend&, const Spec&, const Choice&, void* lent, std::size_t lent_bytes);

  /// Likewise, measured in a way of the backend's own.
  MeasuredChoice measure(Backend&, const Spec&, const Choice&, const std::function<MeasuredChoice()>& measured);

  /// The file's choice among instruction sets, or the measured one, which is added to the file.
  std::string measure(const InstructionSetKey&, const std::function<std::string()>& measured);

 private:
  std::optional<ChoiceCache> cache_;
};

}  // namespace lamina
