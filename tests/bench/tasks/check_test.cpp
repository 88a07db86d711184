// The subcommand `check`: its output for right and wrong gradients, and its exit status.

#include "bench/tasks/describe.h"

#include <memory>

#include "tests/bench/doubles/odd_backend.h"
#include "tests/bench/ended.h"

using namespace lamina;
using namespace lamina::bench;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("check prints the verdict on a layer's gradients, and says where and by how much a gradient is wrong") {
  CheckOptions options;
  options.configs.dtypes = {DType::f64};
  options.net.layers = {{.name = "a layer", .op = Conv{.channels = 3, .kernel = 3}, .x = {2, 2, 5, 5}}};
  options.networks = {"a layer"};
  options.how = GradientCheck{};
  options.backends.names = {"eigen"};
  std::string said;
  const auto check = [&] {
    Session session(options);
    auto odd = std::make_unique<test::Odd>();
    odd->after = [](const Args& args) { args.dw[0].as<double>()[7] *= -1; };
    session.backends.put("eigen", std::move(odd));
    said.clear();
    return check_networks(session, options, [&](const std::string& text) { said += text; });
  };
  CHECK(check() == 0);
  CHECK_THAT(said, ContainsSubstring("a layer on eigen, batch 2, f64:\npassed: 3 tensors"));
  options.plan.options.choice.algorithm[static_cast<std::size_t>(Pass::backward_params)] = "odd";
  CHECK(check() == 1);
  CHECK_THAT(said, ContainsSubstring("weight[0,0,2,1]: gradient ") && ContainsSubstring("failed: 1 of 3 tensors"));
  options.configs.layouts = {Layout::nhwc};
  CHECK(check() == 1);
  CHECK_THAT(said, ContainsSubstring("a layer on eigen, batch 2: not supported: "));
}

TEST_CASE("check takes networks by name") {
  CHECK_THAT(test::said_by("check mnist_mlp --backend=eigen --coordinates=2 --directions=1"),
             ContainsSubstring("mnist_mlp on eigen, batch 2: [2/7] dense_1.weight\n") &&
                 ContainsSubstring("mnist_mlp on eigen, batch 2, f64:\npassed: "));
  test::said_by("check conv --input=3x4x5x5 --channels=2 --kernel=3 --backend=eigen", 0,
                "conv(2, 3x3) of 3x4x5x5 on eigen, batch 3, f64:\npassed: 3 tensors");
}
