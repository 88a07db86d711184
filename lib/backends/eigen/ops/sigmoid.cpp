// y = 1 / (1 + exp(-x)); dx = dy y (1 - y).

#include "smooth.h"

namespace lamina::eigen {

Lowered lower(const Sigmoid&, const Spec& spec, const Choice&, const Context& context) {
  return lower_smooth(
      spec, context, [](const auto& kernels) { return kernels.logistic; }, [](auto y) { return y * (1 - y); });
}

}  // namespace lamina::eigen
