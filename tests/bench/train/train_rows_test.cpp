// Rows of trainings, and what is known of a workload before it is made.

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "bench/rows/rows.h"
#include "lamina/nets.h"
#include "lamina/workloads.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::bench;

TEST_CASE("a training's row is an epoch after a first one, with loss, accuracy and the epoch's work") {
  RunOptions options;
  options.train_share = 0.005;
  options.net.width_divisor = 16;
  Session session(options);
  for (const Workload& known : workloads()) {
    CAPTURE(known.name);
    const Config c{std::string(known.name), "eigen", DType::f32, Layout::nchw, known.batch};
    const std::vector<Row> rows = train_rows(session, options, c);
    REQUIRE(rows.size() == 1);
    const auto measurement = rows[0].group->open();
    const std::vector<Sample> samples = measurement->pass();
    REQUIRE(samples.size() == 1);
    CHECK(samples[0].seconds > 0);
    CHECK(samples[0].cpu_seconds > 0);
    std::map<std::string, double> counters = samples[0].counters;
    CHECK(counters.at("epoch") == 1);
    CHECK(counters.at("loss") > 0);
    CHECK(counters.contains("validation_accuracy") == (known.name != "lstm_text"));
    CHECK(counters.at("samples_per_second") >= counters.at("samples") / samples[0].seconds);
    CHECK(measurement->note().starts_with("synthetic "));
    const Work work = measurement->work().value();
    CHECK(work.images == counters.at("samples"));
    CHECK(work.images == Approx(0.005 * static_cast<double>(known.samples)).margin(known.batch));
    CHECK(work.flops > 0);
    CHECK(measurement->memory().total() > 0);
  }
}

TEST_CASE("what is known of a workload before it is made is its network's") {
  for (const char* name : {"mnist_mlp", "mnist_cnn", "cifar10_cnn"}) {
    CAPTURE(name);
    const Graph graph = nets::build(name, {.batch = 1, .softmax = false});
    double macs = 0;
    for (const Node& node : graph.nodes())
      if (std::holds_alternative<Conv>(node.op) || std::holds_alternative<FullyConnected>(node.op))
        macs += static_cast<double>(node.shape.image()) * static_cast<double>(node.params.at(0).image());
    CHECK(static_cast<double>(workload(name).forward_macs) == macs);
  }
}
