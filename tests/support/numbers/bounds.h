#pragma once
// Bounds on the distance of a correct result from the exact one: (K + 8) * epsilon * (sum of |terms|) for a sum of K
// products.

#include <array>
#include <string>
#include <vector>

#include "tests/support/cases/unit.h"

namespace lamina::test {

/// The error allowed for element i is count * epsilon * (terms[i] + |old contents|); a count of 0 requires equality.
struct Bound {
  Values terms;
  double count = 0;
};

struct Bounds {
  Bound y{};
  std::vector<Bound> dx{}, dw{}, state{};
};

/// The algorithms of forward, backward_params and backward_data, by name.
using Algorithms = std::array<std::string, 3>;

/// Bounds for one op (a case without a tail) from its inputs in f64. For linear ops, the terms are the oracle's result
/// on absolute values. For other ops, they are the absolute values of the terms of the formula, and the count is
/// multiplied by the number of factors that have an error of (K + 8) epsilon themselves. Passes of a Winograd algorithm
/// have the bounds of winograd_bounds.h.
Bounds bounds_of(const Case&, const Feed&, const Algorithms& = {});

}  // namespace lamina::test
