#pragma once
// A race: candidates in turns, a rule for its end, and a winner by the rounds that two candidates both ran.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lamina/statistics.h"

namespace lamina {

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
/// warm up comes first. `time(i)` returns seconds, or nothing if the candidate cannot run, which then has no rounds.
///
/// The first candidate stays, since it would be taken without a race. Any other leaves when it is clearly slower. Then
/// its warm-up took over 10 ms and over four times the shortest, or, after three rounds or more, its whole interval is
/// above twice the interval of the least median. After `fewest_samples` rounds the race ends if one candidate is left.
LAMINA_API std::vector<Raced> race(std::size_t candidates,
                                   const std::function<std::optional<double>(std::size_t)>& time,
                                   const RaceRules& = {});

/// Whether the challenger is faster by more than `factor`: the whole interval of the ratio of their paired rounds says
/// so. A challenger that ran fewer rounds than the leader does not win.
LAMINA_API bool beats(const Rounds& challenger, const Rounds& leader, double factor = 1);

/// The candidate to take. The first candidate leads until another beats it, and so on: if a difference is noise, the
/// earlier candidate is taken. Needs at least one candidate.
LAMINA_API std::size_t winner(const std::vector<Rounds>&, double factor = 1);

}  // namespace lamina
