// A program that uses lamina. It lists devices, builds a narrow ResNet-18, runs both passes, reads a gradient, and
// catches an error.
#include <lamina/lamina.h>

#include <cmath>
#include <vector>

int main() {
  if (lamina::devices().empty()) return 1;
  const auto backend = lamina::make_backend("eigen");
  lamina::Plan plan(lamina::nets::build("resnet18", {.batch = 2, .image = 64, .width_divisor = 8}), *backend);
  plan.forward();
  plan.backward();
  const lamina::Tensor dw = plan.parameter_gradient("conv1.weight");
  std::vector<float> values(static_cast<std::size_t>(dw.shape.count()));
  lamina::download(backend->device(), values, dw);

  try {
    lamina::nets::build("vgg16", {.image = 8});
  } catch (const lamina::ShapeError&) {
    return values[0] != 0 && std::isfinite(values[0]) ? 0 : 1;
  }
  return 1;
}
