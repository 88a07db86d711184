#pragma once
// The one race: candidates in turns, a rule for its end, and a winner by the rounds that both candidates ran.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lamina/statistics.h"

namespace lamina {

/// Seconds of one candidate, by round: a candidate that leaves a race has no further rounds.
using Rounds = std::vector<double>;

struct RaceRules {
  std::size_t rounds = 9;  ///< at most
  double seconds = 10;     ///< when the rounds took so long, the race ends, but not before `fewest_samples` rounds
};

/// The times of one candidate.
struct Raced {
  double warm_up_seconds = 0;
  Rounds rounds;
  bool finished = false;  ///< it stayed to the end
};

/// Times the candidates in turns (A B C, C B A, ...), so that a slow drift of the machine favours none, after one round
/// to warm up. `time(i)` returns seconds, or nothing if the candidate cannot run; it then leaves without rounds.
///
/// The first candidate stays: it is what would be taken without a race. Any other leaves when it is clearly slower: its
/// warm-up took over 10 ms and four times as long as the shortest, or after three rounds its whole interval is above
/// twice that of the least median. After `fewest_samples` rounds the race also ends if one candidate is left.
LAMINA_API std::vector<Raced> race(std::size_t candidates,
                                   const std::function<std::optional<double>(std::size_t)>& time,
                                   const RaceRules& = {});

/// Whether the challenger is faster by more than `factor`, by the interval of the ratio of their paired rounds. A
/// challenger that ran fewer rounds than the leader does not win.
LAMINA_API bool beats(const Rounds& challenger, const Rounds& leader, double factor = 1);

/// The candidate to take. The first one leads until another beats it, and so on: if the difference is noise, the
/// earlier one is taken. Needs at least one.
LAMINA_API std::size_t winner(const std::vector<Rounds>&, double factor = 1);

}  // namespace lamina
