// y = tanh(x); dx = dy (1 - y y).

#include "smooth.h"

namespace lamina::eigen {

Lowered lower(const Tanh&, const Spec& spec, const Choice&, const Context& context) {
  return lower_smooth(
      spec, context, [](const auto& kernels) { return kernels.tanh; }, [](auto y) { return 1 - y * y; });
}

}  // namespace lamina::eigen
