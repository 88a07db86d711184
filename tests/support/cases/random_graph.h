#pragma once
// Random networks: every op, values with one to three readers, joins, slices, chains that fuse and chains that do not.

#include "lamina/graph.h"
#include "lamina/plan.h"
#include "tests/support/numbers/values.h"

namespace lamina::test {

/// A graph of about `size` ops on small maps, a function of the dice alone. Every node is read. The output is {n, 3, 1,
/// 1}, or a loss of such values.
Graph random_graph(Dice&, int size);

/// Draws the options that change where a plan's values are, and when: fuse, keep, gradients, mode.
void draw_options(Dice&, Options&);

}  // namespace lamina::test
