// Every op by every algorithm on cuda-host, in three orders of blocks and threads: the same bits. And every existing
// kernel has run.

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/host/grid.h"
#include "kernels/lstm/lstm.h"
#include "kernels/timing/delay.h"
#include "kernels/timing/peak.h"
#include "lamina/error.h"
#include "lamina/plan.h"
#include "tests/support/backend.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;
namespace host = lamina::cuda_host::host;

namespace {

const Conv conv_3x3{.channels = 5, .kernel = 3, .pad = 1, .groups = 1};

/// Small, and odd at every edge; larger cases only if a kernel needs them. To reach a new kernel, add the
/// smallest case that runs it.
std::vector<Case> cases() {
  const Shape x{2, 6, 7, 9};
  const Link relu{Relu{}}, add{Add{}};
  std::vector<Case> all = {
      {"conv", conv_3x3, {x}},
      {"conv + ReLU", conv_3x3, {x}, {relu}},
      {"grouped conv", Conv{.channels = 4, .kernel = {3, 2}, .stride = 2, .pad = 1, .groups = 2}, {x}},
      {"long strided sums", Conv{.channels = 80, .kernel = 3, .stride = 2, .pad = 1, .bias = false}, {{1, 2, 5, 5}}},
      {"long sums", Conv{.channels = 3, .kernel = 3, .pad = 1, .bias = false}, {{3, 40, 14, 14}}},
      {"many tiles", Conv{.channels = 3, .kernel = 3, .pad = 1, .bias = false}, {{2, 3, 16, 33}}, {relu}},
      {"1x1 in packs + ReLU", Conv{.channels = 8, .kernel = 1}, {{2, 8, 6, 6}}, {relu}},
      {"long 1x1", Conv{.channels = 4, .kernel = 1}, {{2, 300, 3, 3}}},
      {"many pixels", Conv{.channels = 2, .kernel = 1, .bias = false}, {{2, 2, 23, 23}}},
      {"bias of many pixels", Conv{.channels = 2, .kernel = 1}, {{2, 2, 32, 33}}},
      {"max pool", MaxPool{.window = 3, .stride = 2, .pad = 1, .rounding = Rounding::up}, {x}},
      {"wide max pool", MaxPool{.window = {16, 17}, .stride = 1}, {{1, 2, 17, 18}}},
      {"average pool", AveragePool{.window = 3, .stride = 2, .pad = 1}, {x}},
      {"global average pool", GlobalAveragePool{}, {x}},
      {"batch norm", BatchNorm{}, {x}},
      {"batch norm + ReLU", BatchNorm{}, {x}, {relu}},
      {"batch norm + add + ReLU", BatchNorm{}, {x}, {add, relu}},
      {"long batch norm", BatchNorm{}, {{2, 2, 40, 40}}, {relu}},
      {"LRN", Lrn{}, {x}},
      {"wide LRN", Lrn{.size = 3}, {x}},
      {"ReLU", Relu{}, {x}},
      {"fully connected", FullyConnected{.outputs = 10}, {x}},
      {"fully connected + ReLU", FullyConnected{.outputs = 10}, {x}, {relu}},
      {"long fully connected", FullyConnected{.outputs = 6}, {{3, 50, 5, 6}}},
      {"dropout", Dropout{}, {x}},
      {"softmax", Softmax{}, {x}},
      {"softmax of classes", Softmax{}, {{3, 130, 1, 1}}},
      {"sigmoid", Sigmoid{}, {x}},
      {"tanh", Tanh{}, {x}},
      {"clip", Clip{.low = -0.5, .high = 1}, {x}},
      {"hard sigmoid", HardSigmoid{}, {x}},
      {"hard swish", HardSwish{}, {x}},
      {"SiLU", Silu{}, {x}},
      {"multiply", Multiply{}, {x, x}},
      {"multiply of planes", Multiply{}, {x, {x.n, x.c, 1, 1}}},
      {"pad", Pad{.before = {0, 2}, .after = 1, .value = 3}, {x}},
      {"pad by mirror", Pad{.before = {0, 2}, .after = 1, .by = PadBy::reflect}, {x}},
      {"channel shuffle", ChannelShuffle{3}, {x}},
      {"softmax cross entropy", SoftmaxCrossEntropy{.clip = 0.1}, {x, {x.n, 1, x.h, x.w}}},
      {"softmax cross entropy of classes", SoftmaxCrossEntropy{}, {{5, 300, 1, 1}, {5, 1, 1, 1}}},
      {"sigmoid cross entropy", SigmoidCrossEntropy{}, {x, x}},
      {"embedding", Embedding{.vocabulary = 9, .features = 70}, {{2, 1, 150, 1}}},
      {"LSTM", Lstm{.hidden = 5}, {{3, 4, 6, 1}}},
      {"LSTM of ids", Lstm{.hidden = 9, .steps = Steps::last, .reverse = true, .vocabulary = 6}, {{2, 1, 5, 1}}},
      {"add", Add{}, {x, x}},
      {"add of three", Add{}, {x, x, x}},
      {"concat", Concat{}, {x, {2, 3, 7, 9}}},
      {"slice", Slice{.first = 1, .channels = 3}, {x}},
  };
  for (std::size_t i = 0, count = all.size(); i < count; ++i) {
    Case inference = all[i];
    inference.mode = Mode::inference;
    all.push_back(inference);
  }
  const Conv alike{.channels = x.c, .kernel = 3, .pad = 1};
  all.push_back({"conv + batch norm + add + ReLU", alike, {x}, {{BatchNorm{}}, add, relu}, Mode::inference});
  return all;
}

/// Every algorithm of every pass, as triples, and the backend's own pick.
std::vector<Choice> choices(Backend& backend, const Spec& spec) {
  std::vector<Choice> all(1);
  const std::array passes = {Pass::forward, Pass::backward_params, Pass::backward_data};
  for (std::size_t pass = 0; pass < passes.size(); ++pass) {
    if (spec.mode == Mode::inference && pass > 0) continue;
    const std::vector<std::string> names = backend.algorithms(spec, passes[pass]);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (all.size() <= i + 1) all.emplace_back();
      all[i + 1].algorithm[pass] = names[i];
    }
  }
  return all;
}

bool same_bits(const Result& a, const Result& b) {
  return a.y == b.y && a.dx == b.dx && a.dw == b.dw && a.state == b.state;
}

void check_orders(Backend& backend, const Case& c, DType dtype, bool adds) {
  const std::optional<Spec> spec = make_spec(backend, c, {.dtype = dtype, .adds = adds});
  REQUIRE(spec);
  const Feed feed = make_feed(c, 3);
  for (const Choice& choice : choices(backend, *spec)) {
    INFO(to_string(c) << " in " << to_string(dtype) << " by " << choice.algorithm[0] << '/' << choice.algorithm[1]
                      << '/' << choice.algorithm[2]);
    host::set_thread_order(host::Order::ascending);
    const Result ascending = run_unit(backend, *spec, choice, feed);
    host::set_thread_order(host::Order::descending);
    CHECK(same_bits(run_unit(backend, *spec, choice, feed), ascending));
    host::set_thread_order(host::Order::shuffled, 7);
    CHECK(same_bits(run_unit(backend, *spec, choice, feed), ascending));
  }
  host::set_thread_order(host::Order::ascending);
}

/// Two updates of a plan's parameter, which is then read back.
Values updated(const std::shared_ptr<Backend>& backend, const Graph& graph, std::string_view parameter,
               const Options& options) {
  Plan plan(graph, *backend, options);
  for (int i = 0; i < 2; ++i) {
    plan.forward();
    plan.backward();
    plan.update(0.1);
  }
  return read(backend->device(), plan.parameter(parameter));
}

void check_update_orders(const std::shared_ptr<Backend>& backend, const Graph& graph, std::string_view parameter,
                         const Options& options) {
  INFO(to_string(*options.optimiser) << " in " << to_string(options.dtype) << ", " << parameter);
  host::set_thread_order(host::Order::ascending);
  const Values ascending = updated(backend, graph, parameter, options);
  host::set_thread_order(host::Order::descending);
  CHECK(updated(backend, graph, parameter, options) == ascending);
  host::set_thread_order(host::Order::shuffled, 7);
  CHECK(updated(backend, graph, parameter, options) == ascending);
  host::set_thread_order(host::Order::ascending);
}

void check_update_orders(const std::shared_ptr<Backend>& backend, DType dtype) {
  Graph layer("one layer");
  fully_connected(layer.input({1, 7, 1, 1}), "fc", {.outputs = 333});  // several slices of the norm
  Options options;
  options.dtype = dtype;
  options.clip_norm = 0.5;
  for (const Optimiser& optimiser :
       std::vector<Optimiser>{Sgd{}, Sgd{.momentum = 0.9}, RmsProp{}, Adadelta{}, Adam{}}) {
    options.optimiser = optimiser;
    check_update_orders(backend, layer, "fc.weight", options);
  }

  Graph table("a table, of which some rows are read");
  embedding(table.input({2, 1, 3, 1}, "ids"), "words", {.vocabulary = 40, .features = 37});
  options.clip_norm = 0;
  options.table_updates = TableUpdates::lazy;
  for (const Optimiser& optimiser : std::vector<Optimiser>{Sgd{}, Adam{}}) {
    options.optimiser = optimiser;
    check_update_orders(backend, table, "words.weight", options);
  }
}

/// Ids as one-hot rows: a kernel of the backend cudnn alone.
void check_one_hot_orders() {
  const std::vector<float> ids = {0, 2, 1, 1, 0, 2};
  const auto rows = [&](host::Order order) {
    host::set_thread_order(order, 7);
    std::vector<float> to(18);
    lamina::cuda_host::lstm_one_hot<float>(nullptr, {ids.data(), 2, 1, 3, 1, 3}, {}, 3, to.data());
    return to;
  };
  const std::vector<float> ascending = rows(host::Order::ascending);
  CHECK(rows(host::Order::descending) == ascending);
  CHECK(rows(host::Order::shuffled) == ascending);
  host::set_thread_order(host::Order::ascending);
}

/// The names of the functions that are marked __global__ in the project's kernel files; each occurs once.
std::set<std::string> kernels_written() {
  std::set<std::string> names;
  const std::regex bounds(R"(__launch_bounds__\((?:[^()]|\([^()]*\))*\))"), kernel(R"(__global__\s+void\s+(\w+))");
  for (const auto& file : std::filesystem::recursive_directory_iterator(LAMINA_KERNELS)) {
    if (file.path().extension() != ".cu" && file.path().extension() != ".h") continue;
    std::ifstream stream(file.path());
    const std::string whole{std::istreambuf_iterator<char>(stream), {}}, text = std::regex_replace(whole, bounds, "");
    for (std::sregex_iterator i(text.begin(), text.end(), kernel), end; i != end; ++i) {
      INFO(file.path() << ": " << (*i)[1]);
      CHECK(names.insert((*i)[1]).second);
    }
  }
  return names;
}

std::set<std::string> minus(const std::set<std::string>& a, const std::set<std::string>& b) {
  std::set<std::string> rest;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::inserter(rest, rest.end()));
  return rest;
}

}  // namespace

TEST_CASE(
    "every op and every update has the same bits in every order of blocks and threads, and every kernel there is has "
    "run") {
  const auto backend = make_backend("cuda-host");
  for (const Case& c : cases())
    for (const DType dtype : element_types())
      for (const bool adds : {false, true})
        if (!adds || c.mode == Mode::training) check_orders(*backend, c, dtype, adds);
  for (const DType dtype : element_types()) check_update_orders(backend, dtype);
  check_one_hot_orders();

  // These belong to no op: timing_test.cpp tests them.
  std::vector<float> out(lamina::cuda_host::peak_threads);
  lamina::cuda_host::peak<float>(nullptr, out.data(), 1, 1, 0.5F, 0.5F);
  lamina::cuda_host::delay(nullptr, 1);

  std::set<std::string> run;
  for (const auto& [name, count] : host::kernels_run()) run.insert(name);
  const std::set<std::string> written = kernels_written();
  CHECK(written.size() > 30);
  CHECK(minus(written, run) == std::set<std::string>());  // never ran: add a case that runs it
  CHECK(minus(run, written) == std::set<std::string>());
}
