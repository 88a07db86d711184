// Loss scaling: results that it must not change, the state after a step with an overflow, changes of the scale, and
// refusals.

#include "tests/support/catch.h"
#include "tests/train/networks.h"
#include "tests/train/runs.h"

using namespace lamina::test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A graph whose table may be updated lazily.
Graph words() { return classifier(30); }

Options options_of(const Optimiser& optimiser, DType dtype, double loss_scale) {
  return {.dtype = dtype, .seed = 5, .optimiser = optimiser, .loss_scale = loss_scale};
}

/// Sets the gradient of the loss, multiplied by the loss scale if there is one.
void start_gradient(Plan& plan, double share) {
  if (plan.options().loss_scale > 0) return plan.scale_loss(share);
  write(plan.backend().device(), plan.output_gradient(), {share, 0});
}

void step(Plan& plan, double share = 1) {
  plan.forward();
  start_gradient(plan, share);
  plan.backward();
  plan.update(1e-2, 1 / share);
}

}  // namespace

TEST_CASE("in f32 a loss scale changes no bit of any optimiser's steps") {
  for (const std::string& name : optimiser_names())
    for (const bool clips : {false, true})
      for (const bool lazy : {false, true})
        for (const bool accumulates : {false, true}) {
          Options options = options_of(named_optimiser(name).optimiser, DType::f32, 0);
          options.clip_norm = clips ? 0.1 : 0;
          options.accumulate_parameters = accumulates;
          options.table_updates = lazy ? TableUpdates::lazy : TableUpdates::dense;
          if (name == "sgd" && !lazy) options.optimiser = Sgd{.momentum = 0.9};
          if (lazy && (clips || name.find("adamw") != name.npos)) continue;
          INFO(name << (clips ? ", clipped" : "") << (lazy ? ", lazy" : "") << (accumulates ? ", accumulated" : ""));
          Plan plain(words(), backend(), options);
          options.loss_scale = 0x1p16;
          Plan scaled(words(), backend(), options);
          for (int i = 0; i < 5; ++i) step(plain, 0.5), step(scaled, 0.5);
          CHECK(everything(scaled) == everything(plain));
          CHECK(scaled.loss_scale().updates == 5);
          CHECK(scaled.loss_scale().good == 5);
        }
}

TEST_CASE("a step with an overflow changes no parameter, optimiser state or count, and halves the scale") {
  for (const DType dtype : {DType::f16, DType::f32})
    for (const bool lazy : {false, true})
      for (const bool accumulates : {false, true}) {
        INFO(to_string(dtype) << (lazy ? ", lazy" : "") << (accumulates ? ", accumulated" : ""));
        Options options = options_of(Adam{}, dtype, 0x1p10);
        options.accumulate_parameters = accumulates;
        options.table_updates = lazy ? TableUpdates::lazy : TableUpdates::dense;
        Plan plan(words(), backend(), options), straight(words(), backend(), options);
        for (Plan* each : {&plan, &straight}) step(*each), step(*each);
        const std::vector<Values> before = everything(plan);
        CHECK(before == everything(straight));

        // One element of one gradient is infinite, then NaN.
        for (const double planted : {infinity, -infinity, std::numeric_limits<double>::quiet_NaN()}) {
          plan.forward();
          plan.scale_loss();
          plan.backward();
          const Tensor gradient = plan.parameter_gradient("fc.weight");
          Values values = read(backend().device(), gradient);
          values.back() = planted;
          write(backend().device(), gradient, values);
          plan.update(1e-2);
          CHECK(everything(plan) == before);
        }
        CHECK(plan.loss_scale().scale == 0x1p7F);
        CHECK(plan.loss_scale().updates == 2);
        CHECK(plan.loss_scale().good == 0);
        CHECK(plan.updates() == 5);

        // The run continues as if the skipped steps had not happened.
        LossScale again = plan.loss_scale();
        again.scale = 0x1p10F;
        plan.set_loss_scale(again);
        for (Plan* each : {&plan, &straight}) step(*each), step(*each);
        CHECK(everything(plan) == everything(straight));
        CHECK(everything(plan) != before);
        CHECK(plan.loss_scale().updates == 4);
      }
}

TEST_CASE("with a loss scale too large for f16 the updates are skipped until the scale fits") {
  Plan plan(words(), backend(), options_of(Sgd{}, DType::f16, 0x1p30));
  const std::vector<Values> before = everything(plan);
  int skipped = 0;
  for (; everything(plan) == before && skipped < 30; ++skipped) step(plan);
  CHECK(skipped > 10);
  CHECK(plan.loss_scale().updates == 1);
  CHECK(plan.loss_scale().scale == std::ldexp(1.0F, 31 - skipped));
}

TEST_CASE("a gradient that underflows to 0 in f16 is kept by a loss scale") {
  Graph graph("small");
  Value x = graph.input({2, 4, 1, 1}, "x");
  x = fully_connected(x, "first", {.outputs = 4});
  x = fully_connected(x, "second", {.outputs = 3});
  softmax_cross_entropy(x, graph.input({2, 1, 1, 1}, "labels"), "loss");
  for (const double scale : {1.0, 0x1p16}) {
    Plan plan(graph, backend(), options_of(Sgd{}, DType::f16, scale));
    plan.forward();
    plan.scale_loss(0x1p-24);
    plan.backward();
    const Values gradient = read(plan, plan.parameter_gradient("first.weight"));
    CHECK((absolute(gradient) == Values(gradient.size(), 0)) == (scale == 1));
  }
}

TEST_CASE("the scale doubles after a fixed number of updates without overflow, and stays a normal number") {
  Plan plan(words(), backend(), options_of(Sgd{}, DType::f16, 2));
  LossScale now = plan.loss_scale();
  CHECK(now.scale == 2);
  now.good = LossScale::growth - 2;
  plan.set_loss_scale(now);
  step(plan);
  CHECK(plan.loss_scale().scale == 2);
  step(plan);
  CHECK(plan.loss_scale().scale == 4);
  CHECK(plan.loss_scale().good == 0);
  LossScale most{.scale = 0x1p127F, .good = LossScale::growth - 1}, least{.scale = 0x1p-126F};
  most.next(true);
  least.next(false);
  CHECK(most.scale == 0x1p127F);
  CHECK(least.scale == 0x1p-126F);
}

TEST_CASE("a trainer scales losses only in f16, and goes on after a batch that overflows") {
  const auto source = digits(64, 1);
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    TrainerOptions options{.seed = 3, .plan = {.dtype = dtype}};
    Plan* plan = nullptr;
    Values before;  // the parameter after the last batch
    options.after_batch = [&](const Progress& at) {
      if (dtype != DType::f16) return;
      const Values weights = read(*plan, plan->parameter("fc.weight"));
      CHECK((weights == before) == (at.batch == 4));
      before = weights;
      LossScale now = plan->loss_scale();
      if (at.batch == 3) now.scale = 0x1p40F;
      if (at.batch == 4) {
        CHECK(now.scale == 0x1p39F);
        now.scale = 0x1p16F;
      }
      plan->set_loss_scale(now);
    };
    Trainer trainer(small_network(8), backend(), *source, options);
    plan = &trainer.plan();
    CHECK(plan->options().loss_scale == (dtype == DType::f16 ? 0x1p16 : 0));
    CHECK(std::isfinite(trainer.train(1)[0].training.loss));
    if (dtype != DType::f16) continue;
    CHECK(plan->loss_scale().updates == 7);
    CHECK(plan->updates() == 8);
  }
}

TEST_CASE("a training in f16 that skips every update ends when its loss scale reaches the minimum") {
  const auto source = digits(64, 1);
  TrainerOptions options{.seed = 3, .plan = {.dtype = DType::f16}};
  Plan* plan = nullptr;
  options.after_batch = [&](const Progress& at) {
    if (at.epoch == 1 && at.batch == 1) write(*plan, plan->parameter("fc.bias"), Values(10, NAN));
  };
  Trainer trainer(small_network(8), backend(), *source, options);
  plan = &trainer.plan();
  CHECK(std::isfinite(trainer.train(1)[0].training.loss));
  CHECK_THROWS_WITH(trainer.train(100), ContainsSubstring("every update is skipped"));
  CHECK(plan->loss_scale().scale == 0x1p-126F);
  CHECK(trainer.epochs().size() < 30);  // 142 updates to the minimum, 8 per epoch; a GPU checks at an epoch's end
}

TEST_CASE("an impossible loss scale is refused, and the error says why") {
  const auto refuses = [](const Graph& graph, const Options& options, const char* what) {
    CHECK_THROWS_MATCHES(predict_memory(graph, backend(), options), UsageError, Says("loss_scale", what));
  };
  for (const double scale : {-1.0, infinity, std::nan(""), 1e39, 1e-39})
    refuses(words(), options_of(Adam{}, DType::f16, scale), "finite number above 0");
  refuses(words(), options_of(Adam{}, DType::f64, 2), "f64");
  Graph no_loss("no loss");
  fully_connected(no_loss.input({2, 3, 1, 1}), "fc", {.outputs = 2});
  refuses(no_loss, options_of(Adam{}, DType::f16, 2), "no loss");
  Options without = options_of(Adam{}, DType::f16, 2);
  without.optimiser.reset();
  refuses(words(), without, "optimiser");

  const auto source = digits(16, 1);
  for (const auto& [scale, text] : {std::pair{0.0, "0"}, std::pair{infinity, "inf"}, std::pair{std::nan(""), "nan"}}) {
    TrainerOptions options{.loss_scale = scale};
    CHECK_THROWS_MATCHES(Trainer(small_network(8), backend(), *source, options), UsageError,
                         Says("loss_scale is ", text));
  }
  Plan plain(words(), backend(), options_of(Adam{}, DType::f16, 0));
  CHECK_THROWS_AS(plain.scale_loss(), UsageError);
  CHECK_THROWS_AS(plain.loss_scale(), UsageError);
}
