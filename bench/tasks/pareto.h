#pragma once
// Which of several ways to do one thing are worth having: not beaten in time, workspace and error together.

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "tune/statistics.h"

namespace lamina::bench {

/// Whether two intervals overlap: then neither is called faster.
bool tied(const Interval&, const Interval&);

struct Offer {
  Interval seconds;
  std::size_t workspace_bytes = 0;
  double error = 0;
  bool deterministic = true;
};

struct Limits {
  std::size_t workspace_bytes = std::numeric_limits<std::size_t>::max();
  double max_error = std::numeric_limits<double>::infinity();
  bool deterministic = false;  ///< demanded
};

bool within(const Offer&, const Limits&);

/// Whether `a` makes `b` pointless: needs no more workspace, errs no more, gives up no determinism, and is faster; or
/// is tied with it in time and better in one of the others.
bool beats(const Offer& a, const Offer& b);

/// By offer: whether no other beats it. Of equal ones that are tied, all stay.
std::vector<bool> not_beaten(const std::vector<Offer>&);

/// The offer within the limits with the least median, the earlier of two equals.
std::optional<std::size_t> fastest(const std::vector<Offer>&, const Limits&);

/// The other offers within the limits that are tied with `best`.
std::vector<std::size_t> tied_with(const std::vector<Offer>&, const Limits&, std::size_t best);

}  // namespace lamina::bench
