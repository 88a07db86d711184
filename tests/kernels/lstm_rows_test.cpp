// Sequences as rows, on the host: ids become one-hot rows; more rows than a grid has are refused.

#include <cmath>
#include <vector>

#include "kernels/lstm/lstm.h"
#include "lamina/error.h"
#include "lamina/plan.h"
#include "tests/support/catch.h"

using namespace lamina;

TEST_CASE("kernels: ids become one-hot rows, by images or by steps, in either direction") {
  const std::vector<float> ids = {0, 2, 1, 1, -1, 0};  // two images of three steps
  const auto rows = [&](bool reverse, bool steps_first) {
    std::vector<float> to(18, 7);
    cuda_host::lstm_one_hot<float>(nullptr, {ids.data(), 2, 1, 3, 1, 3}, {reverse, steps_first}, 3, to.data());
    std::vector<int> hot;  // the place of the 1 in each row, -1 for a row of NaN
    for (std::size_t row = 0; row < 6; ++row) {
      int place = -2, ones = 0, zeros = 0, nans = 0;
      for (std::size_t c = 0; c < 3; ++c) {
        const float value = to[3 * row + c];
        if (value == 1) place = static_cast<int>(c), ++ones;
        zeros += value == 0;
        nans += std::isnan(value);
      }
      CHECK(((ones == 1 && zeros == 2) || nans == 3));
      hot.push_back(nans == 3 ? -1 : place);
    }
    return hot;
  };
  CHECK(rows(false, false) == std::vector<int>{0, 2, 1, 1, -1, 0});
  CHECK(rows(false, true) == std::vector<int>{0, 1, 2, -1, 1, 0});
  CHECK(rows(true, false) == std::vector<int>{1, 2, 0, 0, -1, 1});
  CHECK(rows(true, true) == std::vector<int>{1, 0, 2, -1, 0, 1});
}

TEST_CASE("kernels: an LSTM of more rows than the grid of its product has is refused") {
  const auto backend = make_backend("cuda-host");
  const auto plan = [&](int images) {
    Graph graph("long");
    lstm(graph.input({images, 1, 1024, 1}), "lstm", {.hidden = 1});
    return predict_memory(graph, *backend, {.mode = Mode::inference});
  };
  CHECK_NOTHROW(plan(4095));
  CHECK_THROWS_AS(plan(4096), Unsupported);
  CHECK_THROWS_WITH(plan(4096), Catch::Matchers::ContainsSubstring("up to 4194240 steps of all images, not 4194304"));
}
