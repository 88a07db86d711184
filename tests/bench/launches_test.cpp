// Rows on a modelled device with a queue: whether their times include the host's launches, and the device's state in
// them.

#include "bench/rows/rows.h"
#include "bench/timing/stopwatch.h"
#include "ended.h"
#include "tests/bench/doubles/queued_backend.h"

using namespace lamina;
using namespace lamina::bench;
using namespace lamina::test;

namespace {

const Config mlp = {"mnist_mlp", "queued", DType::f32, Layout::nchw, 1};
constexpr const char* pass_names[] = {"forward", "backward_data", "backward_params"};

/// Rows of a network on a modelled device.
struct Modelled {
  explicit Modelled(bool graph = false, const std::string& name = "queued") : session(options) {
    config.backend = name;
    options.plan.cuda_graph = graph;
    auto made = std::make_unique<QueuedBackend>();
    backend = made.get();
    session.backends.put(name, std::move(made));
  }
  std::unique_ptr<TimedRun> open(const std::string& part, bool layer) {
    for (const Row& row : layer ? layer_rows(session, options, config) : net_rows(session, options, config))
      if (row.group->parts[row.part] == part) return row.group->open();
    FAIL("there is no such row");
    return nullptr;
  }

  Config config = mlp;
  RunOptions options;
  Session session;
  QueuedBackend* backend;
};

}  // namespace

TEST_CASE("a layer's time excludes launches, which a delay on the device hides, unless no delay is long enough") {
  for (const char* pass : pass_names)
    for (const double host : {30e-6, 700e-6, 8e-3}) {  // hidden by the first delay, by a longer delay, and by none
      CAPTURE(pass, host);
      Modelled model;
      model.backend->host_seconds = host;
      const auto layer = model.open(pass, true);
      for (int i = 0; i < 3; ++i) {
        const std::vector<Sample> samples = layer->pass();
        REQUIRE(samples.size() == 1);
        CHECK(samples[0].launches == (host < 8e-3 ? Launches::hidden : Launches::included));
        if (host < 8e-3)
          CHECK(samples[0].seconds == Approx(1e-3));  // one kernel
        else
          CHECK(samples[0].seconds > 2e-3);
      }
    }
}

TEST_CASE("with --cold, an untimed write of other memory precedes each pass of a layer, and the row's name says cold") {
  for (const bool cold : {false, true}) {
    Modelled model;
    model.options.plan.cold = cold;
    for (const Row& row : layer_rows(model.session, model.options, model.config))
      for (const std::string& text : {row_name(row.key), row.rerun})
        CHECK((text.find("cold") != std::string::npos) == cold);
    const auto layer = model.open("backward_data", true);
    int fills = 0;
    model.backend->device().at_fill = [&](std::size_t bytes) {
      ++fills;
      CHECK(bytes >= std::size_t{200} << 20);
      model.backend->device().launch(1e-6, 100e-6);
    };
    for (int i = 1; i <= 3; ++i) {
      CHECK(layer->pass()[0].seconds == Approx(1e-3));
      CHECK(fills == (cold ? i : 0));
    }
  }
}

TEST_CASE("each timed pass of a network follows an untimed pass on a GPU, but not on other devices") {
  for (const auto& [name, passes_run] : {std::pair("cuda", 2), std::pair("queued", 1)}) {
    Modelled model(false, name);
    const auto network = model.open("total", false);
    const auto kernels_of = [&](const auto& work) {
      const int before = model.backend->kernels_run;
      work();
      return model.backend->kernels_run - before;
    };
    Plan plan(model.session.plans.graph(model.config), *model.backend,
              model.session.plans.options(model.config, Mode::training));
    const int once = kernels_of([&] { plan.forward(), plan.backward(); });
    CAPTURE(name);
    REQUIRE(once > 0);
    for (int i = 0; i < 3; ++i) CHECK(kernels_of([&] { network->pass(); }) == passes_run * once);
  }
}

TEST_CASE("a network's time includes its launches, unless it is replayed as a graph") {
  Modelled plain;
  const double kernels = [&] {
    const Graph graph = plain.session.plans.graph(mlp);
    Plan plan(graph, plain.session.backends.at("queued"), plain.session.plans.options(mlp, Mode::training));
    return static_cast<double>(plan.forward_calls());
  }();
  plain.backend->host_seconds = 2e-3;  // slower than the device
  const std::vector<Sample> seen = plain.open("forward", false)->pass();
  REQUIRE(seen.size() == 3);
  CHECK(seen[0].seconds == Approx(kernels * 2e-3 + 1e-3));
  CHECK(seen[2].seconds == Approx(seen[0].seconds + seen[1].seconds));
  for (const Sample& sample : seen) CHECK(sample.launches == Launches::included);
  CHECK(plain.backend->device().holds.empty());

  Modelled graph(true);
  graph.backend->host_seconds = 2e-3;
  const std::vector<Sample> replayed = graph.open("forward", false)->pass();
  CHECK(replayed[0].seconds == Approx(kernels * 1e-3));
  for (const Sample& sample : replayed) CHECK(sample.launches == Launches::replayed);
}

TEST_CASE("a row on a device with a queue is warmed up before it is timed, and a row on a processor only runs once") {
  for (const bool layer : {true, false}) {
    CAPTURE(layer);
    Modelled model;
    const auto opened = model.open("forward", layer);
    const double before = model.backend->device().idle_from();
    CHECK(before >= 0.05);
    opened->pass();
    CHECK(model.backend->device().idle_from() - before < 0.05);  // the passes that are timed are not warmed up again
  }
  Modelled processor;
  processor.backend->device().longest = 0;
  const auto layer = processor.open("forward", true);
  CHECK(processor.backend->device().idle_from() < 0.01);
  CHECK(layer->pass().at(0).launches == Launches::none);
}

TEST_CASE("a sample has the state that the device reports after the pass") {
  Modelled model;
  double mhz = 1000;
  model.backend->device().reading = [&] {
    DeviceState state;
    state.sm_mhz = mhz;
    return state;
  };
  const auto layer = model.open("forward", true);
  mhz = 1500;
  CHECK(layer->pass().at(0).state.sm_mhz == 1500.0);
  const auto network = model.open("forward", false);
  mhz = 1700;
  for (const Sample& sample : network->pass()) CHECK(sample.state.sm_mhz == 1700.0);
}

TEST_CASE("a row's launches are included if any sample includes them, and each reason for a low clock is named once") {
  Sample hidden, included;
  hidden.launches = Launches::hidden;
  hidden.state.throttled = "power cap";
  included.launches = Launches::included;
  included.state.throttled = "thermal slowdown, power cap";
  CHECK(launches_of(std::vector<Sample>{}) == Launches::none);
  CHECK(launches_of(std::vector<Sample>{hidden, hidden}) == Launches::hidden);
  CHECK(launches_of(std::vector<Sample>{hidden, included}) == Launches::included);
  CHECK(throttled_of(std::vector<Sample>{hidden, included, Sample{}}) == "power cap, thermal slowdown");
  CHECK(throttled_of(std::vector<Sample>{Sample{}}).empty());
}

TEST_CASE("the JSON of a row has its launches and the device's readings, and the context explains them") {
  const Folder folder;
  const std::string out = folder.file("rows.json");
  const auto run = [&](const std::string& more) {
    const Ended ended =
        run_program(LAMINA_QUEUED_BENCH, "--backend=eigen --batch=1 --passes=3 --benchmark_out=" + out + " " + more);
    INFO(ended.said);
    REQUIRE(ended.status == 0);
    CHECK_THAT(ended.said, Catch::Matchers::ContainsSubstring("1755 MHz"));
    return read(out);
  };
  const nlohmann::json result = run("'--benchmark_filter=^(net/mnist_mlp/forward|layer/mnist_mlp/.*/forward)/'");
  int nets = 0, layers = 0;
  for (const auto& row : result.at("benchmarks")) {
    const std::string name = row.at("name");
    CAPTURE(name);
    const bool net = name.starts_with("net/");
    (net ? nets : layers) += 1;
    CHECK(row.at("launches") == (net ? "included" : "hidden"));
    CHECK(row.at("throttled") == "power cap");
    if (row.value("aggregate_name", "mean") != "mean") continue;
    CHECK(row.at("sm_mhz") == 1755.0);
    CHECK(row.at("power_w") == 650.5);
    CHECK_FALSE(row.contains("temperature_c"));
    CHECK(row.contains("share_of_peak"));
  }
  CHECK(nets > 3);
  CHECK(layers > 3);
  const auto& context = result.at("context");
  CHECK_THAT(context.at("readings_eigen").get<std::string>(),
             Catch::Matchers::ContainsSubstring("temperature: Not Supported"));

  const nlohmann::json graphs = run("--cuda_graph --benchmark_filter=^net/mnist_mlp/forward/");
  for (const auto& row : graphs.at("benchmarks")) CHECK(row.at("launches") == "replayed");
}
