// Descriptions of networks: layers are compared with a table, memory with the planner's prediction.

#include "bench/tasks/describe.h"

#include <map>
#include <sstream>

#include "bench/io/text.h"
#include "tests/support/catch.h"
#include "tests/support/csv.h"
#include "tests/support/data.h"

using namespace lamina;
using namespace lamina::bench;
using Catch::Matchers::ContainsSubstring;
using test::CsvRow;

namespace {

template <class Options>
Options csv_of(std::vector<std::string> networks) {
  Options options;
  options.networks = std::move(networks);
  options.format = Format::csv;
  return options;
}

/// A layer as text, such as "conv1: 96x54x54, 34944, 101616768". The text leaves out a count (#2) in the name, and a
/// vector's extents of 1. A dropout has its number of elements in place of its shape, because the PyTorch versions of
/// the networks flatten before some dropouts.
std::string line(std::string name, std::string output, const std::string& parameters, const std::string& products,
                 bool dropout) {
  name = name.substr(0, name.find('#'));
  if (output.ends_with("x1x1")) output.resize(output.size() - 4);
  if (dropout) {
    std::int64_t elements = 1;
    std::istringstream extents(output);
    for (std::string extent; std::getline(extents, extent, 'x');) elements *= std::stoll(extent);
    output = std::to_string(elements);
  }
  return name + ": " + output + ", " + parameters + ", " + products;
}

/// Rows of the table of memory, by kind of memory.
std::map<std::string, CsvRow> memory_of(const MemoryOptions& options) {
  Session session(options);
  std::map<std::string, CsvRow> by_kind;
  for (const CsvRow& row : test::csv_rows(describe_memory(session, options))) by_kind[row.at("MiB")] = row;
  return by_kind;
}

MemoryReport predicted(Session& session, int batch, Mode mode) {
  const Config c{"mnist_cnn", "eigen", DType::f32, Layout::nchw, batch};
  return predict_memory(session.plans.graph(c), session.backends.at("eigen"), session.plans.options(c, mode));
}

}  // namespace

TEST_CASE("described layers equal the tables of layers, for every network, and the total is their sum") {
  const std::vector<CsvRow> table = test::read_csv(test::data("network_layers.csv"));
  for (const nets::Info& info : nets::list()) {
    const std::string network(info.name);
    CAPTURE(network);
    std::multiset<std::string> expected, described;
    for (const CsvRow& row : table)
      if (row.at("network") == network && !row.at("type").starts_with("Flatten"))
        expected.insert(
            line(row.at("layer"), row.at("out"), row.at("params"), row.at("macs"), row.at("type") == "Dropout"));
    const std::vector<CsvRow> rows = test::csv_rows(describe(csv_of<DescribeOptions>({network})));
    std::map<std::string, std::int64_t> sums;
    for (const CsvRow& row : rows) {
      for (const char* column : {"parameters", "multiply_adds", "bytes"})
        sums[column] += (row.at("name") == "total" ? -1 : 1) * std::stoll(row.at(column));
      if (row.at("op") != "input" && row.at("name") != "total")
        described.insert(line(row.at("name"), row.at("output"), row.at("parameters"), row.at("multiply_adds"),
                              row.at("op") == "dropout"));
    }
    REQUIRE(described == expected);
    REQUIRE(rows.back().at("name") == "total");
    for (const auto& [column, left] : sums) REQUIRE(left == 0);
  }
}

TEST_CASE("described memory is the planner's prediction, and the largest batch is the last that fits") {
  auto options = csv_of<MemoryOptions>({"mnist_cnn"});
  options.backends.memory_limit = 64 << 20;
  const auto by_kind = memory_of(options);
  Session session(options);
  const auto bytes = [&](const char* kind, const char* mode) {
    return std::stod(by_kind.at(kind).at(mode)) * mebibyte;
  };
  const MemoryReport training = predicted(session, 16, Mode::training);
  REQUIRE(bytes("total", "training") == Approx(static_cast<double>(training.total())).margin(0.006 * mebibyte));
  REQUIRE(bytes("arena", "training") == Approx(static_cast<double>(training.arena)).margin(0.006 * mebibyte));
  REQUIRE(bytes("parameters", "inference") ==
          Approx(static_cast<double>(predicted(session, 16, Mode::inference).parameters)).margin(0.006 * mebibyte));

  for (const Mode mode : {Mode::training, Mode::inference}) {
    const int largest = std::stoi(by_kind.at("largest batch").at(mode == Mode::training ? "training" : "inference"));
    CAPTURE(largest);
    REQUIRE(predicted(session, largest, mode).total() <= options.backends.memory_limit);
    REQUIRE(predicted(session, largest + 1, mode).total() > options.backends.memory_limit);
  }
}

TEST_CASE("described memory of training has the optimiser's name and state, and of inference no state") {
  // Bytes of the optimiser's state for each parameter.
  const std::map<std::string, double> bytes_of_one = {{"", 0}, {"sgd", 0}, {"keras_rmsprop", 4}, {"adam", 8}};
  std::map<std::string, int> largest;
  for (const auto& [optimiser, bytes] : bytes_of_one) {
    CAPTURE(optimiser);
    auto options = csv_of<MemoryOptions>({"mnist_cnn"});
    options.backends.memory_limit = 64 << 20;
    options.optimiser = optimiser;
    const auto by_kind = memory_of(options);
    Session session(options);
    const auto mib = [&](const char* kind, const char* mode) { return std::stod(by_kind.at(kind).at(mode)); };
    const double state = bytes * 1199882 / mebibyte;                     // mnist_cnn has 1199882 parameters
    CHECK(mib("optimiser", "training") == Approx(state).margin(0.012));  // tensors are aligned
    CHECK(mib("optimiser", "inference") == 0);
    CHECK(mib("total", "training") ==
          Approx(static_cast<double>(predicted(session, 16, Mode::training).total()) / mebibyte + state).margin(0.02));
    largest[optimiser] = std::stoi(by_kind.at("largest batch").at("training"));
  }
  CHECK(largest["sgd"] == largest[""]);
  CHECK(largest["adam"] < largest["keras_rmsprop"]);

  auto text = csv_of<MemoryOptions>({"mnist_cnn"});
  text.format = Format::text;
  text.optimiser = "keras_adam";
  text.backends.memory_limit = 1 << 20;
  Session session(text);
  CHECK_THAT(describe_memory(session, text),
             ContainsSubstring("training by keras_adam") && ContainsSubstring("not even one image fits in 1.00 MiB"));
}

namespace {

/// Rows of eigen's algorithms for a network, by layer and pass.
std::map<std::string, CsvRow> algorithms(const char* network, PlanSettings plan) {
  auto options = csv_of<DescribeOptions>({network});
  options.backends.names = {"eigen"};
  options.configs.batches = {2};
  options.net.width_divisor = 2;
  options.plan = std::move(plan);
  Session session(options);
  std::map<std::string, CsvRow> found;
  for (const CsvRow& row : test::csv_rows(describe_algorithms(session, options)))
    found[row.at("layer") + ", " + row.at("pass")] = row;
  return found;
}

}  // namespace

TEST_CASE("each pass of a layer has its algorithm and why it is taken: only one, by rule, within limits, or measured") {
  const auto by_rule = algorithms("resnet18", {});
  const CsvRow& square = by_rule.at("layer1.0.conv1, forward");
  CHECK(square.at("algorithm") == "winograd_4x4");
  CHECK_THAT(square.at("reason"), ContainsSubstring("rule"));
  const CsvRow& strided = by_rule.at("conv1, backward_params");
  CHECK(strided.at("algorithm") == "im2col_gemm");
  CHECK_THAT(strided.at("reason"), ContainsSubstring("rule") && ContainsSubstring("7x7"));
  CHECK_THAT(by_rule.at("maxpool, forward").at("reason"), ContainsSubstring("only"));

  PlanSettings plan;
  plan.options.choice.max_error = 1e-6;
  const CsvRow limited = algorithms("resnet18", plan).at("layer1.0.conv1, forward");
  CHECK(limited.at("algorithm") == "direct");
  CHECK_THAT(limited.at("reason"), ContainsSubstring("limits") && ContainsSubstring("winograd_4x4"));

  plan = {};
  plan.options.choice.measure = true;
  const auto measured = algorithms("mnist_mlp", plan);
  CHECK_THAT(measured.at("dense_1 + relu_1, forward").at("reason"), ContainsSubstring("measured"));
}
