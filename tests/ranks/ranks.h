#pragma once
// Helpers of test programs that mpirun starts.

#include <algorithm>
#include <cmath>
#include <string>

#include "lamina/communicator.h"
#include "tests/support/numbers/values.h"

namespace lamina::test {

/// The communicator of this process. MPI allows only one.
inline Communicator& ranks() {
  static const auto all = make_communicator("mpi", {.limit_seconds = 30});
  return *all;
}

/// Throws on every rank unless all ranks have the same bits.
inline void check_same_bits(const std::vector<Values>& all) {
  check_same(ranks(), "digest " + std::to_string(digest(all)));
}

/// The largest difference, relative to the largest number of the same list or to 1. NaN if a number is not finite.
inline double largest_difference(const std::vector<Values>& a, const std::vector<Values>& b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    worst = larger(worst, largest_gap(a[i], b[i]) / std::max(1.0, largest_of(a[i])));
  return worst;
}

}  // namespace lamina::test
