#pragma once
// Random networks with every op, values with one to three readers, joins, slices, and chains that can and cannot be
// fused.

#include "lamina/graph.h"
#include "lamina/plan.h"
#include "tests/support/numbers/values.h"

namespace lamina::test {

/// A graph of about `size` ops on small maps, which depends only on the dice. Every node has a reader. The output is
/// {n, 3, 1, 1}, or a loss of such values.
Graph random_graph(Dice&, int size);

/// Draws the options that change the places and lifetimes of a plan's values: fuse, keep, gradients, mode.
void draw_options(Dice&, Options&);

}  // namespace lamina::test
