#pragma once
// Computes the graphs of fake_graph.h on the host, and the calls of fake.h around them. Only the operations that our
// backends use are implemented.

#include "tests/cudnn/fakes/fake_graph.h"

namespace lamina::test {

void compute_graph(const FakeGraph::Object& graph, const FakeGraph::Places&);

/// Lets the calls around a graph compute, too: ReLU and its mask, sums, copies, the gradient of a bias.
void compute_calls(cudnn::Api&);

}  // namespace lamina::test
