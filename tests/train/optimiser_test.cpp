// Optimisers are compared with their formulas, element by element. A plan's clipping, state and errors around updates.

#include "lamina/optimiser.h"

#include "tests/support/cases/plans.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

Graph small_graph(int outputs = 4) {
  Graph graph("small");
  Value x = graph.input({2, 3, 1, 1});
  x = relu(fully_connected(x, "first", {.outputs = 5}));
  fully_connected(x, "second", {.outputs = outputs});
  return graph;
}

Options training(const Optimiser& optimiser, DType dtype = DType::f64) {
  return {.dtype = dtype, .optimiser = optimiser};
}

/// One element of a parameter, and the optimiser's state for it.
struct Element {
  double p = 0, a = 0, b = 0;
};

/// The formulas of lamina/optimiser.h for one element. `t` is the number of the update, from 1.
struct Formula {
  Element e;
  double g, rate, t;

  Element operator()(const Sgd& o) const {
    const double G = g + o.weight_decay * e.p, v = o.momentum * e.a + G;
    return {e.p - rate * (o.nesterov ? G + o.momentum * v : v), v, 0};
  }
  Element operator()(const KerasSgd& o) const {
    const double v = o.momentum * e.a - rate * g;
    return {e.p + (o.nesterov ? o.momentum * v - rate * g : v), v, 0};
  }
  Element operator()(const RmsProp& o) const {
    const double G = g + o.weight_decay * e.p, a = o.rho * e.a + (1 - o.rho) * G * G;
    return {e.p - rate * G / (std::sqrt(a) + o.epsilon), a, 0};
  }
  Element operator()(const Adagrad& o) const {
    const double G = g + o.weight_decay * e.p, a = e.a + G * G;
    return {e.p - rate * G / (std::sqrt(a) + o.epsilon), a, 0};
  }
  Element operator()(const Adadelta& o) const {
    const double G = g + o.weight_decay * e.p, a = o.rho * e.a + (1 - o.rho) * G * G;
    const double u = G * std::sqrt(e.b + o.epsilon) / std::sqrt(a + o.epsilon);
    return {e.p - rate * u, a, o.rho * e.b + (1 - o.rho) * u * u};
  }
  Element operator()(const Adam& o) const { return adam(o, g + o.weight_decay * e.p, e.p); }
  Element operator()(const AdamW& o) const { return adam(o, g, e.p * (1 - rate * o.weight_decay)); }
  Element operator()(const KerasAdam& o) const {
    const double m = o.beta1 * e.a + (1 - o.beta1) * g, v = o.beta2 * e.b + (1 - o.beta2) * g * g;
    const double step = rate * std::sqrt(1 - std::pow(o.beta2, t)) / (1 - std::pow(o.beta1, t));
    return {e.p - step * m / (std::sqrt(v) + o.epsilon), m, v};
  }

  template <class T>
  Element adam(const T& o, double G, double p) const {
    const double m = o.beta1 * e.a + (1 - o.beta1) * G, v = o.beta2 * e.b + (1 - o.beta2) * G * G;
    const double mean = m / (1 - std::pow(o.beta1, t)), square = v / (1 - std::pow(o.beta2, t));
    return {p - rate * mean / (std::sqrt(square) + o.epsilon), m, v};
  }
};

/// Sets random gradients for every parameter of a plan, and returns them.
std::map<std::string, Values> draw_gradients(Plan& plan, std::uint64_t key) {
  run_passes(plan);
  std::map<std::string, Values> all;
  for (const std::string& name : plan.parameter_names()) {
    const Tensor gradient = plan.parameter_gradient(name);
    all[name] = normal(gradient.shape, ++key * 1000);
    write(plan.backend().device(), gradient, all[name]);
  }
  return all;
}

double norm_of(const std::map<std::string, Values>& all) {
  double sum = 0;
  for (const auto& [name, values] : all)
    for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

}  // namespace

TEST_CASE("an update follows the optimiser's formula, in f64 and f32, with changing rates") {
  const Optimiser optimiser =
      GENERATE(as<Optimiser>{}, Sgd{}, Sgd{.weight_decay = 0.1}, Sgd{.momentum = 0.9},
               Sgd{.momentum = 0.9, .nesterov = true, .weight_decay = 0.1}, KerasSgd{}, KerasSgd{.momentum = 0.8},
               KerasSgd{.momentum = 0.8, .nesterov = true}, RmsProp{.weight_decay = 0.1}, RmsProp{.rho = 0.9},
               Adagrad{}, Adagrad{.epsilon = 0.1, .weight_decay = 0.1}, Adadelta{},
               Adadelta{.rho = 0.95, .epsilon = 1e-8, .weight_decay = 0.1}, Adam{}, Adam{.weight_decay = 0.1}, AdamW{},
               KerasAdam{.epsilon = 1e-3});
  for (const auto& backend : tested_backends())
    for (const DType dtype : {DType::f64, DType::f32}) {
      Plan plan(small_graph(), *backend, training(optimiser, dtype));
      std::map<std::string, std::vector<Element>> wanted;
      for (const std::string& p : plan.parameter_names())
        for (const double value : read(plan, plan.parameter(p))) wanted[p].push_back({value, 0, 0});
      const auto parts = state_names(optimiser);
      INFO(backend->describe() << ", " << to_string(dtype) << ", " << to_string(optimiser));
      for (int t = 1; t <= 4; ++t) {
        const double rate = 0.1 / t;
        for (const auto& [p, gradient] : draw_gradients(plan, static_cast<std::uint64_t>(t))) {
          auto& elements = wanted.at(p);
          for (std::size_t i = 0; i < gradient.size(); ++i)
            elements[i] = std::visit(Formula{elements[i], gradient[i], rate, static_cast<double>(t)}, optimiser);
        }
        plan.update(rate);
      }
      CHECK(plan.updates() == 4);
      // An update has a dozen roundings of numbers around 1. In the first updates, Adadelta and Adam divide by the root
      // of a number near 0, which increases the error.
      const double bound = dtype == DType::f64 ? 1e-13 : 2e-5;
      const double sign = std::holds_alternative<KerasSgd>(optimiser) ? -1 : 1;  // v is stored with the opposite sign
      for (const auto& [p, elements] : wanted) {
        INFO(p);
        Values values, a, b;
        for (const Element& e : elements) values.push_back(e.p), a.push_back(sign * e.a), b.push_back(e.b);
        CHECK(largest_gap(read(plan, plan.parameter(p)), values) < bound);
        for (std::size_t s = 0; s < parts.size(); ++s) {
          const Values state = read(plan, plan.optimiser_state(p + "." + std::string(parts[s])));
          CHECK(largest_gap(state, s == 0 ? a : b) < bound);
        }
      }
    }
}

TEST_CASE("gradients are clipped by the norm over all gradients, and only above the limit") {
  const DType dtype = GENERATE(DType::f64, DType::f32);
  for (const auto& backend : tested_backends()) {
    for (const double scale : {1.0, 0.5, -2.0})
      for (const double limit : {3.0, 1e6}) {
        Options options = training(Sgd{}, dtype);
        options.clip_norm = limit;
        Plan plan(small_graph(1100), *backend, options);  // large enough for several slices of the norm
        const Values before = read(plan, plan.parameter("second.weight"));
        const auto gradients = draw_gradients(plan, 7);
        const double factor = std::min(1.0, limit / (norm_of(gradients) * std::abs(scale) + 1e-6));
        plan.update(0.1, scale);
        Values want = before;
        for (std::size_t i = 0; i < want.size(); ++i)
          want[i] -= 0.1 * factor * scale * gradients.at("second.weight")[i];
        const double worst = largest_gap(read(plan, plan.parameter("second.weight")), want);
        INFO(backend->describe() << ", " << to_string(dtype) << ", scale " << scale << ", limit " << limit);
        CHECK((limit > 1e5) == (factor == 1));
        CHECK(worst < (dtype == DType::f64 ? 1e-14 : 5e-6));  // about 40 roundings of numbers around 1
      }
  }
}

TEST_CASE("an update has the same bits with any number of threads") {
  std::vector<Values> results;
  for (const int threads : {1, 2, 3}) {
    const auto backend = make_backend("eigen", {.threads = threads});
    Options options = training(Adam{}, DType::f32);
    options.clip_norm = 1;
    Graph graph("wide");
    fully_connected(graph.input({1, 300, 1, 1}), "fc", {.outputs = 101});
    Plan plan(graph, *backend, options);
    for (const std::uint64_t key : {1U, 2U}) {
      draw_gradients(plan, key);
      plan.update(0.1);
    }
    results.push_back(read(plan, plan.parameter("fc.weight")));
  }
  CHECK(results[0] == results[1]);
  CHECK(results[0] == results[2]);
}

TEST_CASE("an update clears gradients only in a plan that accumulates") {
  for (const auto& backend : tested_backends()) {
    for (const bool accumulates : {false, true}) {
      Options options = training(Sgd{});
      options.accumulate_parameters = accumulates;
      Plan plan(small_graph(), *backend, options);
      const auto gradients = draw_gradients(plan, 3);
      plan.update(0.1);
      const Values left = read(plan, plan.parameter_gradient("first.weight"));
      INFO(backend->describe());
      CHECK((left == gradients.at("first.weight")) == !accumulates);
      CHECK((left == zeros(plan.parameter_gradient("first.weight").shape)) == accumulates);
    }
  }
}

TEST_CASE("two batches with accumulated gradients, scaled by 1/2, give the update of their mean") {
  const Shape shape{2, 3, 1, 1}, out{2, 4, 1, 1};
  const auto pass = [&](Plan& plan, std::uint64_t key) {
    write(plan, plan.input(), normal(shape, key));
    plan.forward();
    write(plan, plan.output_gradient(), normal(out, key + 1));
    plan.backward();
  };
  Options options = training(Sgd{});
  Plan mean(small_graph(), oracle(), options);
  options.accumulate_parameters = true;
  Plan added(small_graph(), oracle(), options);
  pass(mean, 10);
  Values sum = read(mean, mean.parameter_gradient("second.weight"));
  pass(mean, 20);
  sum = plus(sum, read(mean, mean.parameter_gradient("second.weight")));
  Values want = read(added, added.parameter("second.weight"));
  for (std::size_t i = 0; i < sum.size(); ++i) want[i] -= sum[i] / 2;
  pass(added, 10);
  pass(added, 20);
  added.update(1, 0.5);
  CHECK(largest_gap(read(added, added.parameter("second.weight")), want) < 1e-13);
}

TEST_CASE("the optimiser's state is predicted and reported: each state has the bytes of the parameters") {
  const auto bytes = [&](const Optimiser& optimiser, double clip_norm) {
    Options options = training(optimiser);
    options.clip_norm = clip_norm;
    const MemoryReport predicted = predict_memory(small_graph(), oracle(), options);
    Plan plan(small_graph(), oracle(), options);
    CHECK(plan.memory().optimiser == predicted.optimiser);
    CHECK(plan.memory().total() == predicted.total());
    CHECK(plan.optimiser_state_names().size() == 4 * state_names(optimiser).size());
    return std::pair(predicted.optimiser, predicted.parameters / 2);
  };
  const std::size_t block = bytes(Sgd{}, 0).second;
  CHECK(block >= (5 * 3 + 5 + 4 * 5 + 4) * sizeof(double));
  CHECK(bytes(Sgd{}, 0).first == 0);
  CHECK(bytes(Sgd{.momentum = 0.9}, 0).first == block);
  CHECK(bytes(RmsProp{}, 0).first == block);
  CHECK(bytes(Adadelta{}, 0).first == 2 * block);
  CHECK(bytes(Adam{}, 0).first == 2 * block);
  CHECK(bytes(Adam{}, 1).first > 2 * block);
}

TEST_CASE("an update without new gradients, or with numbers out of range, is an error") {
  Plan without(small_graph(), oracle());
  run_passes(without);
  CHECK_THROWS_AS(without.update(0.1), UsageError);
  Plan plan(small_graph(), oracle(), training(Adam{}));
  CHECK_THROWS_AS(plan.update(0.1), UsageError);
  plan.forward();
  CHECK_THROWS_AS(plan.update(0.1), UsageError);
  plan.backward();
  for (const double rate : {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    CHECK_THROWS_AS(plan.update(rate), UsageError);
  CHECK_NOTHROW(plan.update(0));
  CHECK_THROWS_AS(plan.update(0.1), UsageError);

  CHECK_THROWS_AS(plan.optimiser_state("first.weight.velocity"), UsageError);
  CHECK_THROWS_AS(plan.optimiser_state("mean"), UsageError);
  CHECK_NOTHROW(plan.optimiser_state("first.weight.mean"));

  const std::vector<Optimiser> wrong = {Sgd{.momentum = 1},       Sgd{.nesterov = true},    Sgd{.weight_decay = -1},
                                        KerasSgd{.momentum = -1}, RmsProp{.rho = 1},        RmsProp{.epsilon = 0},
                                        Adadelta{.rho = -0.1},    Adam{.beta1 = 1},         Adam{.beta2 = 2},
                                        AdamW{.epsilon = -1},     KerasAdam{.epsilon = NAN}};
  for (const Optimiser& optimiser : wrong)
    CHECK_THROWS_AS(predict_memory(small_graph(), oracle(), training(optimiser)), UsageError);
  Options inference = training(Sgd{});
  inference.mode = Mode::inference;
  CHECK_THROWS_AS(predict_memory(small_graph(), oracle(), inference), UsageError);
  Options clipped = training(Sgd{});
  clipped.clip_norm = -1;
  CHECK_THROWS_AS(predict_memory(small_graph(), oracle(), clipped), UsageError);
}

TEST_CASE("an optimiser by name has the parameters of its source, and an unknown name is an error") {
  for (const std::string& name : optimiser_names()) {
    CHECK_NOTHROW(check_optimiser(named_optimiser(name).optimiser));
    CHECK(named_optimiser(name).learning_rate > 0);
  }
  CHECK(named_optimiser("keras_rmsprop").optimiser == Optimiser(RmsProp{.rho = 0.9}));
  CHECK(named_optimiser("rmsprop").optimiser == Optimiser(RmsProp{.rho = 0.99}));
  CHECK(named_optimiser("adadelta").learning_rate == 1);
  CHECK_THROWS_AS(named_optimiser("adamm"), UsageError);
}

TEST_CASE("learning rates change as documented") {
  CHECK(constant_rate(0.5)(100) == 0.5);
  CHECK(inverse_time(1, 0.5)(2) == 0.5);
  CHECK(step_decay(8, 0.5, 10)(9) == 8);
  CHECK(step_decay(8, 0.5, 10)(20) == 2);
  CHECK_THROWS_AS(step_decay(1, 1, 0), UsageError);
  CHECK(cosine(3, 1, 10)(0) == 3);
  CHECK(std::abs(cosine(3, 1, 10)(5) - 2) < 1e-15);
  CHECK(cosine(3, 1, 10)(99) == 1);
  CHECK_THROWS_AS(warm_up(3, nullptr), UsageError);
  CHECK(warm_up(3, constant_rate(1))(0) == 0.25);
  CHECK(warm_up(3, constant_rate(1))(3) == 1);
}
