// Queries to the installed cuDNN. Without a cuDNN the exit status is 77, which ctest reports as "skipped".

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "lamina/cudnn_engines.h"
#include "lamina/error.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

using namespace lamina;
using nlohmann::json;

namespace {

std::string properties(const std::string& name) {
  std::ifstream file(LAMINA_DEVICES "/" + name + ".json");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// During its lifetime this thread's allocations may leak: cuDNN keeps some memory until the process ends.
struct LeaksAllowed {
#if defined(__SANITIZE_ADDRESS__)
  __lsan::ScopedDisabler disabler;
#endif
};

/// Opens the installed cuDNN. Ends the process if no cuDNN 9.8 or later is installed.
void opened(std::optional<CudnnEngines>& cudnn, const std::string& device) {
  try {
    cudnn.emplace("", properties(device));
  } catch (const LoadError& error) {
    test::skip(error.what());
  }
}

Spec unit_of(Layout layout) {
  Graph graph("one");
  conv(graph.input({32, 64, 56, 56}), "conv", {.channels = 64, .kernel = 3, .pad = 1, .bias = false});
  return cudnn_graph_units(graph, {.layout = layout, .input_gradient = true}).back().spec;
}

bool any_has(const std::vector<CudnnEngine>& engines, const char* note) {
  return std::any_of(engines.begin(), engines.end(), [&](const CudnnEngine& e) { return e.has(note); });
}

}  // namespace

TEST_CASE(
    "the installed cuDNN proposes engines for every pass, layout and set of device properties, with notes of known "
    "names") {
  [[maybe_unused]] const LeaksAllowed by_the_library{};
  const char* device = GENERATE("h200", "a100");
  std::optional<CudnnEngines> cudnn;
  opened(cudnn, device);
  REQUIRE_THAT(cudnn->version(), ContainsSubstring("9."));
  REQUIRE_FALSE(cudnn->directory().empty());
  for (const Layout layout : {Layout::nchw, Layout::nhwc})
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_params}) {
      const std::vector<CudnnEngine> engines = cudnn->list(unit_of(layout), pass);
      CAPTURE(device, to_string(layout), to_string(pass));
      REQUIRE(engines.size() >= 4);
      REQUIRE_FALSE(engines.front().fallback);
      REQUIRE(engines.back().fallback);
      REQUIRE(any_has(engines, "tensor_core"));  // fails if the environment forbids TF32
      REQUIRE(std::any_of(engines.begin(), engines.end(), [](const CudnnEngine& e) { return e.strict(); }));
      for (const CudnnEngine& engine : engines) {
        REQUIRE(engine.workspace_bytes >= 0);
        REQUIRE(engine.index >= 0);
        for (const std::string& note : engine.notes) REQUIRE(note.find(" note ") == note.npos);  // each note has a name
      }
    }
}

TEST_CASE("device properties without one of their keys are refused, with the installed cuDNN's message") {
  [[maybe_unused]] const LeaksAllowed by_the_library{};
  std::optional<CudnnEngines> cudnn;
  opened(cudnn, "h200");
  const json whole = json::parse(properties("h200"));
  for (const auto& [key, value] : whole.items()) {
    if (key == "deviceName" || key == "memoryBusWidth") continue;  // some versions do not need them
    json less = whole;
    less.erase(key);
    CAPTURE(key);
    try {
      const CudnnEngines again("", less.dump());
      FAIL("taken");
    } catch (const UsageError& error) {
      REQUIRE_THAT(error.what(), ContainsSubstring("cuDNN does not take these device properties"));
      REQUIRE_THAT(error.what(), ContainsSubstring("json"));
    }
  }
  for (const char* text : {"", "{", "[]", "{}", "null"}) REQUIRE_THROWS_AS(CudnnEngines("", text), UsageError);
}
