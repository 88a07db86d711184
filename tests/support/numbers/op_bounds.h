#pragma once
// Common parts of the bounds of all ops: the shapes of a case, and bounds from the oracle's results.

#include "tests/support/numbers/bounds.h"

namespace lamina::test {

/// Bounds of 0: every number must equal the oracle's.
Bounds exact(const Result&);

struct OpBounds {
  const Case& c;
  const Feed& feed;
  const Algorithms& algorithms;
  Shape x = c.x.front();
  Shape y = infer(c.op, c.x).y;
  bool training = c.mode == Mode::training;

  /// The index of an element of x.
  std::size_t at(int n, int channel, std::int64_t place) const {
    return static_cast<std::size_t>((std::int64_t{n} * x.c + channel) * x.plane() + place);
  }

  std::size_t channel_of(std::size_t i) const {
    return i / static_cast<std::size_t>(x.plane()) % static_cast<std::size_t>(x.c);
  }

  Bounds plain() const;  ///< the exact() bounds of the oracle's result
  /// The bounds of an op that is linear in all its inputs, from the numbers of terms in its sums. The oracle's result
  /// on absolute values is the sum of |terms|.
  Bounds linear(double y_terms, double dx_terms, double dw_terms) const;
  /// The bounds of an op that chooses elements. The gradient of an element is a sum of up to `window` terms.
  Bounds maxima(double window) const;
};

/// The bounds of an op that is not linear, from the terms of its formula.
template <class T>
Bounds formula_bounds(const OpBounds&, const T& op);

}  // namespace lamina::test
