#pragma once
// The communicator of a test program that mpirun starts.

#include <algorithm>
#include <cmath>
#include <string>

#include "lamina/communicator.h"
#include "lamina/random.h"
#include "tests/support/numbers/values.h"

namespace lamina::test {

/// The communicator of this process. MPI allows no second one.
inline Communicator& ranks() {
  static const auto all = make_communicator("mpi", {.limit_seconds = 30});
  return *all;
}

/// Throws on every rank unless all ranks have the same bits.
inline void check_same_bits(const std::vector<Values>& all) {
  std::string bytes;
  for (const Values& values : all)
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
  check_same(ranks(), "digest " + std::to_string(hash(bytes)));
}

/// The largest difference, relative to the largest number of the same list, or to 1.
inline double largest_difference(const std::vector<Values>& a, const std::vector<Values>& b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) return INFINITY;
    double scale = 1, most = 0;
    for (std::size_t k = 0; k < a[i].size(); ++k) {
      scale = std::max(scale, std::abs(a[i][k]));
      most = std::max(most, std::abs(a[i][k] - b[i][k]));
      if (!std::isfinite(a[i][k]) || !std::isfinite(b[i][k])) return INFINITY;
    }
    worst = std::max(worst, most / scale);
  }
  return worst;
}

}  // namespace lamina::test
