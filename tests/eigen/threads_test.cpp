// Ops have the same bits on any number of threads, except convolutions, fully connected and recurrent ops. These divide
// their sums among threads, and have the same bits only on the same number of threads.

#include "lamina/nets.h"
#include "tests/support/cases/plans.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

// Cases large enough that every thread gets a share: more elements than the grain, more planes and channels than
// threads.
constexpr Shape map{3, 7, 29, 31};
const std::vector<Case> cases = {
    {"", MaxPool{.window = 3, .stride = 2, .pad = 1}, {map}},
    {"", AveragePool{.window = 3, .stride = 2, .pad = 1}, {map}},
    {"", GlobalAveragePool{}, {map}},
    {"", BatchNorm{}, {map}},
    {"", BatchNorm{}, {map}, {{Add{}}, {Relu{}}}},
    {"", GroupNorm{.groups = 7}, {map}},
    {"", LayerNorm{}, {map}},
    {"", Lrn{}, {map}},
    {"", Lrn{.size = 3, .beta = 0.6}, {map}},
    {"", Relu{}, {map}},
    {"", Dropout{.seed = 5}, {map}},
    {"", Softmax{}, {map}},
    {"", Softmax{.axis = Axis::row}, {map}},
    {"", Softmax{.axis = Axis::column, .log = true}, {map}},
    {"", Reduce{ReduceBy::mean, true, false, false}, {map}},
    {"", Reduce{ReduceBy::sum, true, false, true}, {map}},
    {"", Reduce{ReduceBy::max, false, true, false}, {map}},
    {"", Softmax{}, {{7, 333, 1, 1}}},
    {"", Pointwise{Function::sigmoid}, {map}},
    {"", Pointwise{Function::tanh}, {map}},
    {"", Pointwise{Function::clip, -0.5, 1}, {map}},
    {"", Pointwise{Function::hard_sigmoid, 1.0 / 6, 0.5}, {map}},
    {"", Pointwise{Function::hard_swish}, {map}},
    {"", Pointwise{Function::silu}, {map}},
    {"", Binary{BinaryFunction::multiply}, {map, map}},
    {"", Binary{BinaryFunction::multiply}, {map, {map.n, map.c, 1, 1}}},
    {"", Binary{BinaryFunction::divide}, {map, {map.n, 1, map.h, map.w}}},
    {"", Binary{BinaryFunction::maximum}, {{map.n, 1, map.h, 1}, map}},
    {"", ScaleShift{}, {map}},
    {"", PRelu{}, {map}},
    {"", ScaleShift{.learned = true}, {{1, 9000, 1, 1}}},
    {"", Pad{.before = 1, .after = {0, 2}, .value = 5}, {map}},
    {"", Pad{.before = 1, .after = {0, 2}, .by = PadBy::wrap}, {map}},
    {"", Resize{.to = {50, 40}, .by = ResizeBy::linear}, {map}},
    {"", Resize{.to = {20, 40}, .by = ResizeBy::linear_aligned}, {map}},
    {"", channel_shuffle(map, 7), {map}},
    {"", Reorder{.extents = {7, 29 * 31}, .order = {1, 0}, .channels = 29, .pixels = {31, 7}}, {map}},
    {"", SoftmaxCrossEntropy{}, {map, {map.n, 1, map.h, map.w}}},
    {"", SoftmaxCrossEntropy{}, {{700, 33, 1, 1}, {700, 1, 1, 1}}},
    {"", SigmoidCrossEntropy{}, {map, map}},
    {"", Embedding{.vocabulary = 300, .features = 20}, {{7, 1, 101, 1}}},
    {"", Embedding{.vocabulary = 300, .features = 20}, {{7, 1, 101, 1}}, {{GlobalAveragePool{}}}},
    {"", Add{}, {map, map, map}},
    {"", Concat{}, {map, map}},
    {"", Slice{.first = 2, .count = 4}, {map}},
};

/// Products that threads divide by columns, filters, images or groups; incomplete tiles; more threads than shares.
const std::vector<Case> products = {
    {"", Conv{.channels = 28, .kernel = 3, .pad = 1}, {{3, 25, 14, 14}}},
    {"", Conv{.channels = 20, .kernel = 3, .pad = 1}, {{1, 12, 29, 31}}, {{Relu{}}}},
    {"", Conv{.channels = 48, .kernel = 3, .pad = 1, .groups = 2}, {{5, 48, 7, 7}}},
    {"", Conv{.channels = 70, .kernel = 1}, {{3, 65, 14, 14}}, {{Relu{}}}},
    {"", Conv{.channels = 16, .kernel = 7, .stride = 2, .pad = 3}, {{2, 3, 30, 30}}},
    {"", Conv{.channels = 10, .kernel = 11, .stride = 4, .pad = 2}, {{1, 3, 35, 35}}},
    {"", Conv{.channels = 6, .kernel = {5, 7}, .stride = {2, 3}, .pad = 3, .groups = 2}, {{2, 4, 23, 26}}, {{Relu{}}}},
    {"", Conv{.channels = 20, .kernel = 3, .stride = 2, .pad = 2, .dilation = 2}, {{1, 17, 21, 21}}},
    {"", Conv{.channels = 30, .kernel = 3, .pad = 1, .groups = 15}, {{2, 30, 19, 19}}},
    {"", ConvTranspose{.channels = 5, .kernel = 4, .stride = 2, .pad = 1}, {{3, 7, 29, 31}}},
    {"", FullyConnected{333}, {{5, 70, 3, 3}}},
    {"", FullyConnected{10}, {{17, 600, 1, 1}}, {{Relu{}}}},
};

/// All results of a forward and a backward pass of a training plan of the graph.
Outcome everything(Backend& backend, const Graph& graph) {
  Plan plan(graph, backend, {.input_gradient = true});
  return run(plan);
}

}  // namespace

TEST_CASE("convolution and fully connected give the same bits on every run with the same number of threads") {
  for (const int threads : {1, 2, 3}) {
    const auto a = make_backend("eigen", {.threads = threads}), b = make_backend("eigen", {.threads = threads});
    for (const Case& c : products) {
      const Feed feed = make_feed(c, 1);
      for (const DType dtype : {DType::f32, DType::f64}) {
        const Spec spec = *make_spec(*a, c, {.dtype = dtype});
        const auto backward = a->algorithms(spec, Pass::backward_data);
        REQUIRE(std::ranges::is_permutation(a->algorithms(spec, Pass::backward_params), backward));
        REQUIRE(backward.size() >= 2);
        for (const std::string& algorithm : a->algorithms(spec, Pass::forward)) {
          REQUIRE(std::find(backward.begin(), backward.end(), algorithm) != backward.end());
          INFO(to_string(c) << ' ' << to_string(dtype) << " by " << algorithm << ", " << threads << " threads");
          const Choice choice{.algorithm = {algorithm, algorithm, algorithm}};
          CHECK((run_unit(*a, spec, choice, feed) == run_unit(*b, spec, choice, feed)));
        }
      }
    }
  }
}

TEST_CASE("a network gives the same bits on every run with the same number of threads") {
  const Graph graph = nets::build("resnet18", {.batch = 3, .image = 64, .width_divisor = 2});
  for (const int threads : {1, 2, 3}) {
    INFO(threads << " threads");
    const auto a = make_backend("eigen", {.threads = threads}), b = make_backend("eigen", {.threads = threads});
    const Outcome first = everything(*a, graph);
    CHECK(first.output.size() == 3000);
    CHECK((everything(*a, graph) == first));
    CHECK((everything(*b, graph) == first));
  }
}

TEST_CASE("every op but conv, fully connected and recurrent gives the same bits for any number of threads") {
  const auto one = make_backend("eigen", {.threads = 1});
  for (const int threads : {2, 3, 5}) {
    const auto several = make_backend("eigen", {.threads = threads});
    for (Case c : cases)
      for (const Mode mode : {Mode::training, Mode::inference})
        for (const DType dtype : {DType::f32, DType::f64}) {
          c.mode = mode;
          INFO(to_string(c) << ' ' << to_string(dtype) << ", " << threads << " threads");
          const Spec spec = *make_spec(*one, c, {.dtype = dtype});
          const Feed feed = make_large_feed(c, 1);
          CHECK((run_unit(*one, spec, {}, feed) == run_unit(*several, spec, {}, feed)));
        }
  }
}
