// A program that uses lamina: plans a residual block, runs both passes, reads a gradient, and catches an error.
#include <cmath>
#include <lamina/lamina.h>
#include <vector>

int main() {
  lamina::Graph graph("consumer");
  lamina::Value x = graph.input({2, 4, 8, 8});
  lamina::Value y = batch_norm(conv(x, "conv", {.channels = 4, .kernel = 3, .pad = 1, .bias = false}), "bn");
  fully_connected(relu(add(x, y)), "fc", {.outputs = 10});

  const auto backend = lamina::make_backend("eigen");
  lamina::Plan plan(graph, *backend);
  plan.forward();
  plan.backward();
  std::vector<float> dw(4 * 4 * 3 * 3);
  lamina::download(backend->device(), dw, plan.parameter_gradient("conv.weight"));

  try {
    conv(x, "wrong", {.channels = 4, .kernel = 9, .groups = 3});
  } catch (const lamina::ShapeError&) {
    return dw[0] != 0 && std::isfinite(dw[0]) ? 0 : 1;
  }
  return 1;
}
