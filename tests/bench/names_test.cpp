// Names of rows, and the filter that picks from them.

#include "bench/rows/rows.h"

#include <algorithm>
#include <set>

#include "lamina/error.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::bench;
using Catch::Matchers::ContainsSubstring;

namespace {

const Config resnet50{"resnet50", "eigen"};

std::string net_name(const RunOptions& options, const Config& c = resnet50) {
  return to_string(key_of("net", c, "total", options));
}

std::string layer_name(const RunOptions& options) {
  return to_string(key_of("layer", resnet50, "forward", options, "conv1", "direct"));
}

std::vector<std::string> names_of(const RunOptions& options) {
  Session session(options);
  std::vector<std::string> names;
  for (const Row& row : all_rows(session, options)) names.push_back(row.name);
  return names;
}

}  // namespace

TEST_CASE("a row's name leaves out the defaults") {
  const RunOptions options;
  REQUIRE(net_name(options) == "net/resnet50/total/eigen/f32/nchw/batch:16");
  REQUIRE(layer_name(options) == "layer/resnet50/conv1/forward/eigen/direct/f32/nchw/batch:16");
}

TEST_CASE("what differs from the default is in the name") {
  RunOptions options;
  options.net.image = 224;
  REQUIRE(net_name(options) == "net/resnet50/total/eigen/f32/nchw/batch:16");
  options.net.image = 64;
  options.plan.cuda_graph = true;
  options.plan.keep = Keep::cheap;
  options.plan.fuse = false;
  options.plan.accumulate = true;  // as published
  options.net.softmax = true;      // not as published
  options.plan.input_gradient = false;
  const Config other{"resnet50", "eigen", DType::f64, Layout::nhwc, 3};
  REQUIRE(net_name(options, other) ==
          "net/resnet50/total/eigen/f64/nhwc/batch:3/image:64/graph/recompute/unfused/softmax:1");
  REQUIRE(net_name(options, {"vgg16", "eigen"}) ==
          "net/vgg16/total/eigen/f32/nchw/batch:16/image:64/graph/recompute/unfused/input_gradient:0");
}

TEST_CASE("a forced instruction set is in the names of eigen's rows only") {
  RunOptions options;
  options.backends.instruction_set = "x86-64-v3";
  options.net.width_divisor = 8;
  const std::string forced = "/f32/nchw/batch:16/instruction_set:x86-64-v3/width_divisor:8";
  CHECK(net_name(options) == "net/resnet50/total/eigen" + forced);
  CHECK(layer_name(options) == "layer/resnet50/conv1/forward/eigen/direct" + forced);
  CHECK(net_name(options, {"resnet50", "cuda-host"}) ==
        "net/resnet50/total/cuda-host/f32/nchw/batch:16/width_divisor:8");
}

TEST_CASE("the name of a network's row says that its algorithms were measured") {
  RunOptions options;
  options.plan.choice.measure = true;
  options.plan.choice.deterministic = true;
  REQUIRE(net_name(options) == "net/resnet50/total/eigen/f32/nchw/batch:16/deterministic/measured");
  REQUIRE(layer_name(options) == "layer/resnet50/conv1/forward/eigen/direct/f32/nchw/batch:16/deterministic");
}

TEST_CASE("the protocol is the published one unless a flag says otherwise") {
  PlanningSettings settings;
  {
    const Session published(settings);
    REQUIRE_FALSE(published.plans.protocol("resnet50").input_gradient);
    REQUIRE(published.plans.protocol("vgg16").input_gradient);
    REQUIRE(published.plans.protocol("vgg16").softmax);
  }
  settings.plan.input_gradient = true;
  settings.plan.accumulate = false;
  const Session asked(settings);
  REQUIRE(asked.plans.protocol("resnet50").input_gradient);
  REQUIRE_FALSE(asked.plans.protocol("resnet50").accumulate);
}

TEST_CASE("no two rows have the same name") {
  RunOptions options;
  options.configs.dtypes = {DType::f32, DType::f64};
  options.configs.batches = {1, 16};
  const std::vector<std::string> names = names_of(options);
  REQUIRE(std::set<std::string>(names.begin(), names.end()).size() == names.size());
}

TEST_CASE("without a filter, three rows of each of the ten networks are run, or of three of them") {
  for (const bool quick : {false, true}) {
    RunOptions options;
    options.networks = default_networks(quick);
    const std::vector<bool> picked = pick(names_of(options), default_filter(options));
    REQUIRE(std::count(picked.begin(), picked.end(), true) == (quick ? 9 : 30));
  }
}

TEST_CASE("a filter may end in the end of the documented name") {
  const std::vector<bool> picked = pick({"net/a/batch:1", "net/a/batch:16"}, "batch:1$");
  REQUIRE(picked == std::vector<bool>{true, false});
  CHECK(pick({"net/a/batch:1", "net/a/batch:16"}, "-batch:1$") == std::vector<bool>{false, true});
  CHECK(pick({"net/a/batch:1", "net/a/batch:16"}, "all") == std::vector<bool>{true, true});
}

TEST_CASE("a filter that matches nothing is an error that names the nearest rows") {
  const std::vector<std::string> names = names_of({});
  REQUIRE_THROWS_AS(pick(names, "^net/resnet5/totl/"), UsageError);
  REQUIRE_THROWS_WITH(pick(names, "^net/resnet5/totl/"),
                      ContainsSubstring("^net/resnet5/totl/") && ContainsSubstring("net/resnet50/total/eigen"));
  REQUIRE_THROWS_WITH(pick(names, "conv5_4.*vgg19.*winogard"), ContainsSubstring("nearest"));
}

TEST_CASE("names have the limits and math that are not the default") {
  RunOptions options;
  options.plan.choice.deterministic = true;
  options.plan.choice.max_error = 1e-6;
  options.plan.choice.workspace_limit = 1 << 20;
  options.plan.choice.math = Math::tf32;
  CHECK(net_name(options) ==
        "net/resnet50/total/eigen/tf32/nchw/batch:16/deterministic/max_error:1e-06/workspace_limit:1048576");
  CHECK(layer_name(options) ==
        "layer/resnet50/conv1/forward/eigen/direct/tf32/nchw/batch:16/deterministic/max_error:1e-06/"
        "workspace_limit:1048576");
}

TEST_CASE("a key has the facts of its row as fields, and its name is printed from them") {
  RunOptions options;
  options.net.image = 64;
  options.plan.choice.deterministic = true;
  RowKey key = key_of("layer", resnet50, "backward_data", options, "layer1.0.conv1", "direct");
  CHECK((key.what == "layer" && key.network == "resnet50" && key.layer == "layer1.0.conv1"));
  CHECK((key.part == "backward_data" && key.backend == "eigen" && key.algorithm == "direct" && key.batch == 16));
  CHECK(key.differs == std::vector<std::pair<std::string, std::string>>{{"image", "64"}, {"deterministic", ""}});
  key.algorithm = "default";
  CHECK(to_string(key) ==
        "layer/resnet50/layer1.0.conv1/backward_data/eigen/default/f32/nchw/batch:16/image:64/deterministic");
}
