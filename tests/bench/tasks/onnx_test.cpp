// Networks from ONNX files in lamina_bench: by the names of their files, with the weights in them.

#include <numeric>

#include "bench/measure/net_run.h"
#include "bench/measure/session.h"
#include "bench/rows/rows.h"
#include "bench/tasks/describe.h"
#include "lamina/error.h"
#include "tests/io/files.h"
#include "tests/onnx/model.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::bench;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A file tiny.onnx: a convolution and what follows, its batch open.
class TinyFile {
 public:
  TinyFile() {
    std::vector<float> weights(18);
    std::iota(weights.begin(), weights.end(), 0.F);
    const test::Model model{
        .nodes = {test::node("Conv", {"x", "w"}, {"c"}, {}, "conv1"), test::node("Relu", {"c"}, {"y"})},
        .initializers = {test::tensor("w", {2, 1, 3, 3}, weights)},
        .inputs = {test::value("x", {0, 1, 8, 8})},
        .outputs = {test::value("y", {})}};
    test::write(path(), test::bytes_of(model));
  }
  std::filesystem::path path() const { return folder_ / "tiny.onnx"; }

 private:
  test::Folder folder_;
};

}  // namespace

TEST_CASE("a network of a file is described by the name of its file") {
  const TinyFile file;
  DescribeOptions options;
  options.net.onnx = {file.path()};
  options.networks = {"tiny"};
  const std::string text = describe(options);
  CHECK_THAT(text, ContainsSubstring("tiny: from " + file.path().string()));
  CHECK_THAT(text, ContainsSubstring("conv1") && ContainsSubstring("2x6x6"));
  options.networks = {"tinny"};
  CHECK_THROWS_AS(describe(options), UsageError);
}

TEST_CASE("rows of a file are those of its network alone, at each batch") {
  const TinyFile file;
  RunOptions options;
  options.net.onnx = {file.path()};
  options.backends.names = {"eigen"};
  options.configs.batches = {1, 3};
  Session session(options);
  int forward = 0;
  for (const Row& row : all_rows(session, options)) {
    CHECK(row.key.network == "tiny");
    if (row.name == "net/tiny/forward/eigen/f32/nchw/batch:3") ++forward;
  }
  CHECK(forward == 1);
}

TEST_CASE("a network of a file has the weights of the file") {
  const TinyFile file;
  PlanningSettings settings;
  settings.net.onnx = {file.path()};
  Session session(settings);
  const Config c{"tiny", "eigen", DType::f32, Layout::nchw, 2};
  const TensorFile weights = session.plans.weights(c);
  REQUIRE(weights.contains("conv1.weight"));
  NetRun run(session.plans.graph(c), session.backends.usable("eigen"), session.plans.options(c, Mode::inference), false,
             weights);
  CHECK(save_weights(run.plan()).at("conv1.weight").values.at(17) == 17);
}

TEST_CASE("the size of a file's network is its own") {
  const TinyFile file;
  DescribeOptions options;
  options.net = {.image = 32, .onnx = {file.path()}};
  options.networks = {"tiny"};
  CHECK_THROWS_WITH(describe(options), ContainsSubstring("--image") && ContainsSubstring("tiny.onnx"));
}
