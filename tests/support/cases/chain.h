#pragma once
// Splits a chain of ops into stages, in which each op is a separate case.

#include <cstddef>
#include <vector>

#include "tests/support/cases/unit.h"

namespace lamina::test {

/// One op of a chain, as a separate case, and the positions of its numbers in the feed of the chain.
struct Stage {
  Case c;
  std::size_t value_operand;  ///< for a tail op, the index of the input that is the value so far
  std::size_t first_extra, first_w, first_state;
  std::size_t params, states;
};

/// The oracle's result of an op without a tail, in f64.
Result by_oracle(const Case&, const Feed&);

std::vector<Stage> stages_of(const Case&);

/// The feed of one stage, from the feed of the chain; `value` (null for the first stage) is the value so far.
Feed feed_of(const Stage&, const Feed& all, const Values* value, const Values& dy);

/// The value after every stage, by the oracle.
std::vector<Values> forward_values(const std::vector<Stage>&, const Feed&);

}  // namespace lamina::test
