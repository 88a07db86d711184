// Names of rows, and the filter that picks rows by name.

#include "bench/rows/rows.h"

#include <algorithm>
#include <set>

#include "bench/options/flags.h"
#include "lamina/error.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::bench;
using Catch::Matchers::ContainsSubstring;

namespace {

const Config resnet50{"resnet50", "eigen"};

/// The options that these flags give.
RunOptions options_of(const std::string& flags) {
  RunOptions options;
  CLI::App app;
  add_flags(app, ~0U, options);
  app.parse(flags);
  return options;
}

std::string net_name(const RunOptions& options, const Config& c = resnet50) {
  return row_name(key_of("net", c, "total", options));
}

std::string layer_name(const RunOptions& options) {
  return row_name(key_of("layer", resnet50, "forward", options, "conv1", "direct"));
}

std::vector<std::string> names_of(const RunOptions& options) {
  Session session(options);
  std::vector<std::string> names;
  for (const Row& row : all_rows(session, options)) names.push_back(row.name);
  return names;
}

}  // namespace

TEST_CASE("a row's name has each setting that differs from the default and from the published protocol") {
  const std::string net = "net/resnet50/total/eigen/f32/nchw/batch:16",
                    layer = "layer/resnet50/conv1/forward/eigen/direct/f32/nchw/batch:16";
  struct Named {
    std::string flags, of_net, of_layer;
  };
  for (const auto& [flags, of_net, of_layer] :
       {Named{"", "", ""},
        {"--image=224 --accumulate", "", ""},
        {"--image=64 --cuda_graph --keep=cheap --unfused --softmax --no_input_gradient",
         "/image:64/graph/recompute/unfused/softmax:1", "/image:64"},
        {"--instruction_set=x86-64-v3 --width_divisor=8", "/instruction_set:x86-64-v3/width_divisor:8",
         "/instruction_set:x86-64-v3/width_divisor:8"},
        {"--measure --deterministic", "/deterministic/measured", "/deterministic"},
        {"--deterministic --max_error=1e-6 --workspace_limit=1MiB",
         "/deterministic/max_error:1e-06/workspace_limit:1048576",
         "/deterministic/max_error:1e-06/workspace_limit:1048576"}}) {
    CAPTURE(flags);
    CHECK(net_name(options_of(flags)) == net + of_net);
    CHECK(layer_name(options_of(flags)) == layer + of_layer);
  }
  CHECK(net_name(options_of("--math=tf32"), {"resnet50", "eigen", DType::f32, Layout::nhwc, 3}) ==
        "net/resnet50/total/eigen/tf32/nhwc/batch:3");
  CHECK(net_name(options_of("--no_input_gradient"), {"vgg16", "eigen", DType::f64}) ==
        "net/vgg16/total/eigen/f64/nchw/batch:16/input_gradient:0");
  CHECK(net_name(options_of("--instruction_set=generic"), {"resnet50", "cuda-host"}) ==
        "net/resnet50/total/cuda-host/f32/nchw/batch:16");
}

TEST_CASE("the published protocol is the default, and flags change it") {
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

TEST_CASE("without a filter, ten networks run by three rows each, or three networks with --quick") {
  for (const bool quick : {false, true}) {
    RunOptions options;
    options.networks = default_networks(quick);
    const std::vector<bool> picked = pick(names_of(options), default_filter(options));
    REQUIRE(std::count(picked.begin(), picked.end(), true) == (quick ? 9 : 30));
  }
}

TEST_CASE("a filter may match the end of the documented name") {
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

TEST_CASE("a row's key has the row's facts as fields, and the row's name is made from the key") {
  RunOptions options;
  options.net.image = 64;
  options.plan.options.choice.deterministic = true;
  RowKey key = key_of("layer", resnet50, "backward_data", options, "layer1.0.conv1", "direct");
  CHECK(key.dump() ==
        R"({"what":"layer","network":"resnet50","layer":"layer1.0.conv1","part":"backward_data","backend":"eigen",)"
        R"("algorithm":"direct","type":"f32","layout":"nchw","batch":16,"differs":{"image":"64","deterministic":""}})");
  key["algorithm"] = "default";
  CHECK(row_name(key) ==
        "layer/resnet50/layer1.0.conv1/backward_data/eigen/default/f32/nchw/batch:16/image:64/deterministic");
}
