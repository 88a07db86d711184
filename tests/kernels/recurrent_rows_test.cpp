// Sequences as rows: ids become one-hot rows, and more rows than a grid can have are refused.

#include "kernels/recurrent/recurrent.h"
#include "lamina/plan.h"
#include "resident.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::LAMINA_CUDA_SPACE;

namespace {

template <class T>
std::vector<int> hot_places(bool reverse, bool steps_first) {
  const Resident<T> ids({0, 2, 1, 1, -1, 0}), to(std::vector<T>(18, T(7)));  // two images of three steps
  recurrent_one_hot<T>(tested_stream(), {ids.data(), 2, 1, 3, 1, 3}, {reverse, steps_first}, 3, to.data());
  const std::vector<T> rows = to.now();
  std::vector<int> hot;  // column of the 1 in each row; -1 for a row of NaN
  for (std::size_t row = 0; row < 6; ++row) {
    int place = -2, ones = 0, zeros = 0, nans = 0;
    for (std::size_t c = 0; c < 3; ++c) {
      const T value = rows[3 * row + c];
      if (value == 1) place = static_cast<int>(c), ++ones;
      zeros += value == 0;
      nans += std::isnan(value);
    }
    CHECK(((ones == 1 && zeros == 2) || nans == 3));
    hot.push_back(nans == 3 ? -1 : place);
  }
  return hot;
}

template <class T>
void check_one_hot() {
  CHECK(hot_places<T>(false, false) == std::vector<int>{0, 2, 1, 1, -1, 0});
  CHECK(hot_places<T>(false, true) == std::vector<int>{0, 1, 2, -1, 1, 0});
  CHECK(hot_places<T>(true, false) == std::vector<int>{1, 2, 0, 0, -1, 1});
  CHECK(hot_places<T>(true, true) == std::vector<int>{1, 0, 2, -1, 0, 1});
}

}  // namespace

KERNEL_TEST("kernels: ids become one-hot rows, by images or by steps, in either direction") {
  check_one_hot<float>();
  check_one_hot<double>();
}

#if defined(LAMINA_CUDA_ON_HOST)
TEST_CASE("kernels: an LSTM with more rows than its product's grid can have is refused") {
  const auto backend = make_backend("cuda-host");
  const auto plan = [&](int images) {
    Graph graph("long");
    lstm(graph.input({images, 1, 1024, 1}), "lstm", {.hidden = 1});
    return predict_memory(graph, *backend, {.mode = Mode::inference});
  };
  CHECK_NOTHROW(plan(4095));
  CHECK_THROWS_MATCHES(plan(4096), Unsupported, Says("up to 4194240 steps of all images, not 4194304"));
}
#endif
