// Functions that are fused with the op before them.

#include "lamina/random.h"
#include "lib/core/units/functions.h"
#include "tests/support/cases/plans.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

const Op functions[] = {Pointwise{Function::clip, -0.5, 0.75},
                        Pointwise{Function::clip, 0, 6},
                        Pointwise{Function::sigmoid},
                        Pointwise{Function::tanh},
                        Pointwise{Function::hard_sigmoid, 1.0 / 6, 0.5},
                        Pointwise{Function::hard_swish},
                        Pointwise{Function::silu},
                        Pointwise{Function::leaky_relu, 0.1},
                        Pointwise{Function::elu, 1, 1},
                        Pointwise{Function::celu, 0.5},
                        Pointwise{Function::gelu},
                        Pointwise{Function::gelu_tanh},
                        Pointwise{Function::softplus},
                        Pointwise{Function::mish}};

std::vector<Case> norms() {
  std::vector<Case> all;
  for (const Op& function : functions)
    for (const Shape& x : {Shape{3, 4, 3, 5}, Shape{2, 3, 31, 33}})
      for (const Mode mode : {Mode::training, Mode::inference})
        all.push_back({std::string(op_name(function)), BatchNorm{}, {x}, {{function}}, mode});
  return all;
}

/// Convolutions and fully connected ops in inference, followed by a function. Planes are smaller than a vector, whole
/// vectors, or larger. On cuda-host each function follows only one or two of these ops, because the emulator is slow.
std::vector<Case> products() {
  std::vector<Case> all;
  for (const Op& function : functions) {
    std::ptrdiff_t number = 0;
    const auto add = [&](const Op& op, const Shape& x) {
      if (backend().name() == "cuda-host" && number++ % 6 != (&function - functions) % 6) return;
      all.push_back({std::string(op_name(function)), op, {x}, {{function}}, Mode::inference});
    };
    add(Conv{.channels = 9, .kernel = 1}, {2, 5, 3, 5});
    add(Conv{.channels = 9, .kernel = 1, .bias = false}, {3, 600, 8, 8});
    add(Conv{.channels = 26, .kernel = 3, .pad = 1}, {1, 25, 7, 9});
    add(Conv{.channels = 8, .kernel = 3, .stride = 2, .pad = 1, .groups = 2}, {2, 4, 9, 20});
    add(Conv{.channels = 5, .kernel = 3, .pad = 1, .groups = 5}, {2, 5, 6, 21});
    add(Conv{.channels = 9, .kernel = 1}, {1, 20, 7, 7});
    add(Conv{.channels = 32, .kernel = 3, .pad = 1, .groups = 2}, {2, 8, 6, 9});
    add(FullyConnected{.outputs = 7}, {5, 6, 1, 1});
  }
  return all;
}

/// Sums of two and of three values, followed by a function. In training, the gradient of the function is computed from
/// y.
std::vector<Case> sums(const Shape& of_two) {
  std::vector<Case> all;
  for (const Op& function : functions)
    for (const Mode mode : {Mode::training, Mode::inference}) {
      if (mode == Mode::training && lamina::row_of(std::get<Pointwise>(function).function).reads_x) continue;
      for (const std::vector<Shape>& x : {std::vector<Shape>(2, of_two), std::vector<Shape>(3, {1, 2, 7, 3})})
        all.push_back({std::string(op_name(function)), Add{}, x, {{function}}, mode});
    }
  return all;
}

const Shape longer_than_a_chunk{1, 3, 31, 23};

/// The results of a plan of the case on random numbers: y and, in training, every gradient.
std::vector<Values> results(const Case& c, DType dtype, bool fuse) {
  const Graph graph = graph_of(c);
  const bool trains = c.mode == Mode::training;
  Plan plan(graph, one_thread(), {.mode = c.mode, .dtype = dtype, .fuse = fuse, .input_gradient = trains});
  std::uint64_t key = 0;
  const auto draw = [&](const Tensor& tensor) {
    Values values = zeros(tensor.shape);
    lamina::fill_normal(values, ++key);
    write(plan, tensor, values);
  };
  for (std::size_t i = 0; i < c.x.size(); ++i) draw(plan.input("x" + std::to_string(i)));
  for (const std::string& parameter : plan.parameter_names()) draw(plan.parameter(parameter));
  if (trains) draw(plan.output_gradient());
  plan.parameters_changed();
  Outcome found = run(plan);
  found.gradients.push_back(found.output);
  return found.gradients;
}

}  // namespace

TEST_CASE("a function and the op before it are one unit") {
  if (decided_by_library()) return;  // the library fuses other ops: tests/cudnn covers it
  for (const auto& all : {norms(), products(), sums(longer_than_a_chunk)})
    for (const Case& c : all) {
      INFO(to_string(c));
      CHECK(make_spec(backend(), c, {}).has_value());
    }
  const Op sigmoid = Pointwise{Function::sigmoid};
  const Conv conv{.channels = 2, .kernel = 1};
  const Shape x{1, 2, 3, 4};
  const auto follow = [&](const Op& op, std::vector<Link> tail, Mode mode) {
    return make_spec(backend(), {"", op, {x}, std::move(tail), mode}, {}).has_value();
  };
  const auto joins = [&](std::vector<Link> tail, Mode mode) { return follow(conv, std::move(tail), mode); };
  CHECK_FALSE(joins({{sigmoid}}, Mode::training));
  CHECK_FALSE(joins({{sigmoid}, {Relu{}}}, Mode::inference));
  CHECK_FALSE(joins({{Relu{}}, {Pointwise{Function::clip, 0, 1}}}, Mode::inference));
  CHECK_FALSE(joins({{Add{}}, {sigmoid}}, Mode::inference));
  CHECK(joins({{Add{}}, {Pointwise{Function::clip, 0, 1}}}, Mode::inference));
  CHECK_FALSE(follow(BatchNorm{}, {{Add{}}, {sigmoid}}, Mode::training));
  const Case silu{"", Add{}, {x, x}, {{Pointwise{Function::silu}}}};
  CHECK_FALSE(make_spec(backend(), silu, {}).has_value());
}

TEST_CASE("a function fused with the op before it has the same bits as two separate units") {
  if (decided_by_library()) return;  // the library has its own sigmoid and tanh
  for (const auto& all : {norms(), products(), sums(longer_than_a_chunk)})
    for (const DType dtype : {DType::f32, DType::f64})
      for (const Case& c : all) {
        INFO(to_string(c) << ", " << to_string(dtype));
        const std::vector<Values> fused = results(c, dtype, true);
        CHECK((fused == results(c, dtype, false)));
        for (const Values& values : fused) CHECK(std::ranges::any_of(values, [](double v) { return v != 0; }));
      }
}

TEST_CASE("batch norm and Add with a function have the gradients of finite differences") {
  check_all_differences(norms());
  check_all_differences(sums({2, 3, 4, 5}));
}

TEST_CASE("sums and functions as one unit agree with the single ops") {
  for (const Case& c : sums(longer_than_a_chunk)) check_against_oracle(c);
}

TEST_CASE("ops and a clip as one unit are exact in whole numbers") {
  const std::vector<Link> clip{{Pointwise{Function::clip, -3, 4}}};
  for (const Mode mode : {Mode::training, Mode::inference})
    check_integers({"", Add{}, std::vector<Shape>(3, {2, 3, 4, 5}), clip, mode});
  const Conv conv{.channels = 4, .kernel = 3, .pad = 1};
  check_integers({"", conv, {{2, 3, 5, 6}}, clip, Mode::inference});
  check_integers({"", FullyConnected{.outputs = 7}, {{5, 6, 1, 1}}, clip, Mode::inference});
}

TEST_CASE("products and functions as one unit agree with the single ops, by every algorithm") {
  const BatchNorm norm;
  for (const Case& c : products()) {
    check_against_oracle(c);
    if (!std::holds_alternative<Conv>(c.op)) continue;
    Case with_norm = c;
    with_norm.tail.insert(with_norm.tail.begin(), {norm});
    check_against_oracle(with_norm);
    if (op_name(c.tail[0].op) != "clip") continue;
    with_norm.tail.insert(with_norm.tail.begin() + 1, {Add{}, 1});
    check_against_oracle(with_norm);
  }
}
