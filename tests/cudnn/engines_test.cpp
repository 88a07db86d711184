// Queries for engines to cuDNN's graph API: the arguments of the calls, failures of each call, and files that are no
// suitable cuDNN.

#include "lib/backends/cudnn/graph/operations.h"
#include "lib/backends/cudnn/graph/plans.h"

#include <dlfcn.h>

#include "lamina/error.h"
#include "tests/cudnn/fakes/fake_graph.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::cudnn;
using namespace lamina::cudnn::graph;
using test::fake_graph;
using test::said_by;
using Numbers = std::vector<std::int64_t>;

namespace {

const Conv grouped{.channels = 8, .kernel = {3, 5}, .stride = {2, 1}, .pad = {1, 2}, .dilation = {1, 2}, .groups = 2};
const Shape input{16, 4, 20, 30};

Spec spec_of(Layout layout = Layout::nchw) {
  Graph graph("one");
  Conv plain = grouped;
  plain.bias = false;
  conv(graph.input(input), "conv", plain);
  return cudnn_graph_units(graph, {.layout = layout, .input_gradient = true}).back().spec;
}

std::vector<CudnnEngine> ask(const Target& device, Layout layout = Layout::nchw, Pass pass = Pass::forward) {
  return proposals(device, *operation_graph_of(spec_of(layout), pass));
}

std::vector<CudnnEngine> ask(const Api& api, Layout layout = Layout::nchw, Pass pass = Pass::forward) {
  return ask(Target(api, "{}"), layout, pass);
}

}  // namespace

TEST_CASE("engines are listed in the order of mode A, then of the fallback mode, with their notes by name") {
  const Api api = test::fake_graph_api();
  const std::vector<CudnnEngine> engines = ask(api);
  REQUIRE(fake_graph().modes == Numbers{mode_a, mode_fallback});
  REQUIRE(engines.size() == 4);
  REQUIRE(engines[0].index == 30);
  REQUIRE(engines[1].index == 31);
  REQUIRE(engines[2].index == 20);
  REQUIRE_FALSE(engines[1].fallback);
  REQUIRE(engines[2].fallback);
  const std::vector<std::string> notes = {"tensor_core", "nondeterministic", "runtime_compilation", "behavior note 99"};
  REQUIRE(engines[0].notes == notes);
  REQUIRE_FALSE(engines[0].strict());
  REQUIRE(engines[1].strict());
  REQUIRE(engines[0].workspace_bytes == 4096);
  const std::vector<CudnnEngine::Knob> knobs = {{"tile_size", 5, 2}, {"knob 1000", -1, 1000}};
  REQUIRE(engines[0].knobs == knobs);
}

TEST_CASE("cuDNN gets the convolution's extents, strides, window and the role of each tensor") {
  const Layout layout = GENERATE(Layout::nchw, Layout::nhwc);
  const Pass pass = GENERATE(Pass::forward, Pass::backward_data, Pass::backward_params);
  const Api api = test::fake_graph_api();
  ask(api, layout, pass);

  const auto& told = fake_graph().last_of_kind;
  const auto& conv = told.at(convolution).numbers;
  REQUIRE(conv.at(convolution_form) == Numbers{cudnn::cross_correlation});
  REQUIRE(conv.at(convolution_spatial_dimensions) == Numbers{2});
  REQUIRE(conv.at(convolution_strides) == Numbers{2, 1});
  REQUIRE(conv.at(convolution_dilations) == Numbers{1, 2});
  REQUIRE(conv.at(convolution_pre_paddings) == Numbers{1, 2});
  REQUIRE(conv.at(convolution_post_paddings) == Numbers{1, 2});

  const auto& tensors = fake_graph().tensors;
  REQUIRE(tensors.at(1).numbers.at(tensor_dimensions) == Numbers{16, 4, 20, 30});
  REQUIRE(tensors.at(2).numbers.at(tensor_dimensions) == Numbers{8, 2, 3, 5});
  REQUIRE(tensors.at(3).numbers.at(tensor_dimensions) == Numbers{16, 8, 10, 26});
  const bool nchw = layout == Layout::nchw;
  REQUIRE(tensors.at(1).numbers.at(tensor_strides) == (nchw ? Numbers{2400, 600, 30, 1} : Numbers{2400, 1, 120, 4}));
  REQUIRE(tensors.at(2).numbers.at(tensor_strides) == (nchw ? Numbers{30, 15, 5, 1} : Numbers{30, 1, 10, 2}));
  REQUIRE(tensors.at(1).numbers.at(tensor_data_type) == Numbers{cudnn::data_type::f32});

  const int kind = pass == Pass::forward         ? operation_forward
                   : pass == Pass::backward_data ? operation_backward_data
                                                 : operation_backward_filter;
  const int first = pass == Pass::forward ? 700 : pass == Pass::backward_data ? 706 : 712;
  REQUIRE(told.count(kind) == 1);
  REQUIRE(told.at(kind).scalars.at(first) == 1);
  REQUIRE(told.at(kind).scalars.at(first + 1) == 0);
  REQUIRE(told.at(kind).others.size() == 4);
}

TEST_CASE("each failing call ends in a DeviceError that names the call, and no descriptor is leaked") {
  Api api = test::fake_graph_api();
  ask(api);
  const int calls = fake_graph().calls;
  REQUIRE(calls > 60);
  REQUIRE(fake_graph().created == fake_graph().destroyed);
  const int before = 3;  // Target makes these calls
  for (int call = before + 1; call <= calls; ++call) {
    api = test::fake_graph_api();
    const std::string text = said_by<DeviceError>([&] {
      const Target again(api, "{}");
      fake_graph().failing_call = call;
      ask(again);
    });
    CAPTURE(call);
    REQUIRE_THAT(text, ContainsSubstring("cudnnBackend"));
    REQUIRE_THAT(text, ContainsSubstring("FAKE_BAD_PARAM (2000): what the fake has to say"));
    REQUIRE_THAT(text, ContainsSubstring("cuDNN 9.19.0"));
    REQUIRE(fake_graph().created == fake_graph().destroyed);
  }
}

TEST_CASE("heuristics that do not support a convolution propose no engine, which is no error") {
  const int mode = GENERATE(mode_a, mode_fallback);
  const Api api = test::fake_graph_api();
  fake_graph().refused_mode = mode;
  const std::vector<CudnnEngine> engines = ask(api);
  REQUIRE(engines.size() == 2);
  REQUIRE(engines.front().fallback == (mode == mode_a));
}

TEST_CASE("device properties that the library refuses are the caller's mistake, reported with its message") {
  for (int call = 2; call <= 3; ++call) {  // the calls that set and finalize the properties
    const Api api = test::fake_graph_api();
    fake_graph().failing_call = call;
    const std::string text = said_by<UsageError>([&] { const Target device(api, "{}"); });
    REQUIRE_THAT(text, ContainsSubstring("device properties"));
    REQUIRE_THAT(text, ContainsSubstring("what the fake has to say"));
    REQUIRE(fake_graph().created == fake_graph().destroyed);
  }
}

TEST_CASE("a cuDNN before 9.8, or without the graph API's functions, is a LoadError") {
  const std::string folder = LAMINA_TEST_FAKES;
  const auto text = [&](const std::string& name) {
    return said_by<LoadError>([&] { const CudnnEngines cudnn(folder + name, "{}"); });
  };
  CHECK_THAT(text("/nowhere"), ContainsSubstring("no cuDNN in " + folder + "/nowhere"));
  CHECK_THAT(text("/7.6"), ContainsSubstring("cuDNN 7.6.5 in " + folder + "/7.6 is too old"));
  CHECK_THAT(text("/8.9"), ContainsSubstring("give cuDNN 9.8 or later"));
  CHECK_THAT(text("/other"), ContainsSubstring("cudnnGetVersion"));
  Api api;
  api.version = 90701;
  CHECK_THAT(said_by<LoadError>([&] { check_version(api, false); }), ContainsSubstring("9.7.1"));
  api.version = 90800;
  CHECK_NOTHROW(check_version(api, false));
  CHECK_THAT(said_by<LoadError>([&] { const Target device(api, "{}"); }),
             ContainsSubstring("cudnnBackendCreateDescriptor"));
}

TEST_CASE("a cuDNN in a directory is opened for a query, and closed with its owner") {
  const std::string folder = std::filesystem::canonical(LAMINA_TEST_FAKES "/graph").string();
  {
    const CudnnEngines cudnn(folder, "{}");
    CHECK(cudnn.version() == "9.19.0");
    CHECK(cudnn.directory() == folder);
    const std::vector<CudnnEngine> engines = cudnn.list(spec_of(), Pass::forward);
    REQUIRE(engines.size() == 4);
    CHECK(engines[0].index == 30);
    CHECK(engines[0].has("nondeterministic"));
    CHECK_FALSE(engines[0].has("winograd"));
    CHECK(mapped_directories() == std::vector<std::string>{folder});
  }
  CHECK(mapped_directories().empty());
}

TEST_CASE("a cuDNN whose parts come from two directories is refused at each call") {
  const std::string folder = std::filesystem::canonical(LAMINA_TEST_FAKES "/graph").string();
  const std::string elsewhere = std::filesystem::canonical(LAMINA_TEST_FAKES "/elsewhere").string();
  const CudnnEngines cudnn(folder, "{}");
  void* const part = dlopen((elsewhere + "/libcudnn_cnn.so.9").c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(part != nullptr);
  const auto list = [&] { cudnn.list(spec_of(), Pass::forward); };
  for (int again = 0; again < 2; ++again)
    CHECK_THAT(said_by<LoadError>(list), ContainsSubstring(folder) && ContainsSubstring(elsewhere));
  dlclose(part);
  CHECK_NOTHROW(list());
}
