#pragma once
// Random networks: every op, values read once to three times, joins, slices, chains that fuse and chains that do not.

#include "lamina/graph.h"
#include "lamina/plan.h"
#include "tests/support/numbers/values.h"

namespace lamina::test {

/// A graph of about `size` ops on small maps, a function of the dice alone. Every node is read; the output is {n, 3, 1,
/// 1}, or that of a loss of them.
Graph random_graph(Dice&, int size);

/// Draws what of a plan changes where its values are, and when: fuse, keep, gradients, mode.
void draw_options(Dice&, Options&);

}  // namespace lamina::test
