#pragma once
// Bounds on the error of a correct result. A sum of K products has the bound (K + 8) * epsilon * (sum of |terms|).

#include <array>
#include <string>
#include <vector>

#include "tests/support/cases/unit.h"

namespace lamina::test {

/// The allowed error of element i is count * epsilon * (terms[i] + |old contents|). A count of 0 requires equality.
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

/// The bounds of one op (a case without a tail), from its inputs in f64. For linear ops, the terms are the oracle's
/// result on absolute values. For other ops, the terms are the absolute values of the formula's terms, and the count is
/// multiplied by the number of factors that are themselves sums of K products. Passes of a Winograd algorithm have the
/// bounds of winograd_bounds.h.
Bounds bounds_of(const Case&, const Feed&, const Algorithms& = {});

}  // namespace lamina::test
