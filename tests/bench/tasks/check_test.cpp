// The subcommand `check`: what it prints of right and wrong gradients, and its exit status.

#include "bench/tasks/check.h"

#include "tests/bench/doubles/odd_backend.h"
#include "tests/bench/ended.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::bench;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("check prints the verdict on a graph's gradients, and of a wrong one where and by how much it is wrong") {
  test::Odd odd;
  odd.after = [](const Args& args) { args.dw[0].as<double>()[7] *= -1; };
  Graph graph("layer");
  conv(graph.input({2, 2, 5, 5}, "x"), "conv", {.channels = 3, .kernel = 3});
  Options options{.dtype = DType::f64};
  std::string said;
  const auto check = [&] {
    said.clear();
    return check_graph("a layer", graph, odd, options, {}, [&](const std::string& text) { said += text; });
  };
  CHECK(check());
  CHECK_THAT(said, ContainsSubstring("a layer, f64:\npassed: 3 tensors"));
  options.choice.algorithm[static_cast<std::size_t>(Pass::backward_params)] = "odd";
  CHECK_FALSE(check());
  CHECK_THAT(said, ContainsSubstring("conv.weight[0,0,2,1]: gradient ") && ContainsSubstring("failed: 1 of 3 tensors"));
}

TEST_CASE("check takes networks by name") {
  const test::Ended ended = test::run_bench("check mnist_mlp --backend=eigen --coordinates=2 --directions=1");
  CAPTURE(ended.said);
  CHECK(ended.status == 0);
  CHECK_THAT(ended.said, ContainsSubstring("mnist_mlp on eigen, batch 2: [2/7] dense_1.weight\n") &&
                             ContainsSubstring("mnist_mlp on eigen, batch 2, f64:\npassed: "));
  const test::Ended layer = test::run_bench("check conv --input=3x4x5x5 --channels=2 --kernel=3 --backend=eigen");
  CHECK(layer.status == 0);
  CHECK_THAT(layer.said, ContainsSubstring("conv(2, 3x3) of 3x4x5x5 on eigen, batch 3, f64:\npassed: 3 tensors"));
}
