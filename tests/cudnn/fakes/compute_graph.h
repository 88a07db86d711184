#pragma once
// Computes on the host what a graph of fake_graph.h says, and the calls of fake.h around it. It has only the operations
// that our backends use.

#include "tests/cudnn/fakes/fake_graph.h"

namespace lamina::test {

void compute_graph(const FakeGraph::Object& graph, const FakeGraph::Places&);

/// Lets the calls around a graph compute as well: ReLU and its mask, sums, copies, the gradient of a bias.
void compute_calls(cudnn::Api&);

}  // namespace lamina::test
