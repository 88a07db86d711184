#pragma once
// The one way to race: candidates in turns, one rule for when it ends, and who has won by the rounds that both ran.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "statistics.h"

namespace lamina {

/// Seconds of one candidate, by round: a candidate that leaves a race has no further rounds.
using Rounds = std::vector<double>;

struct RaceRules {
  std::size_t rounds = 9;  ///< at most
  double seconds = 10;  ///< once the rounds took so long, the race ends, after `fewest_samples` rounds at the earliest
};

/// What a race saw of one candidate.
struct Raced {
  double warm_up_seconds = 0;
  Rounds rounds;
  bool finished = false;  ///< it stayed to the end
};

/// Times the candidates in turns (A B C, C B A, ...), so that none has the better half of the time, after one round to
/// warm up. `time(i)` answers seconds; nothing: the candidate cannot run, and leaves without rounds.
///
/// The first candidate stays: it is what would be taken without a race. Any other leaves when it is clearly behind: its
/// warm-up took over 10 ms and four times as long as the shortest, or after three rounds its interval lies wholly above
/// twice that of the least median. After `fewest_samples` rounds the race also ends where one candidate is left.
LAMINA_API std::vector<Raced> race(std::size_t candidates,
                                   const std::function<std::optional<double>(std::size_t)>& time,
                                   const RaceRules& = {});

/// Whether the interval of the ratio of their paired rounds says that the challenger is faster by more than `factor`.
/// One that ran fewer rounds than the leader does not win.
LAMINA_API bool beats(const Rounds& challenger, const Rounds& leader, double factor = 1);

/// Which is to be taken. The first leads until another beats it, and so on with the others: what noise decides is left
/// to the order in which they are given. Needs one.
LAMINA_API std::size_t winner(const std::vector<Rounds>&, double factor = 1);

}  // namespace lamina
