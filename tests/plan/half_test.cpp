// Plans in f16 and bf16: the tensors that are f32, sharing of memory, and the errors compared with f64.

#include "lamina/nets.h"
#include "lib/core/numbers/float16.h"
#include "tests/support/cases/plans.h"
#include "tests/support/cases/random_graph.h"
#include "tests/support/catch.h"
#include "tests/support/wrapped_backend.h"

using namespace lamina::test;

namespace {

/// A network with ids of a large vocabulary, a mean over the steps, and a loss.
Graph reviews() {
  Graph graph("reviews");
  const Value words = embedding(graph.input({4, 1, 6, 1}, "ids"), "words", {.vocabulary = 3000, .features = 3});
  const Value scores = fully_connected(dropout(global_average_pool(words), "drop"), "fc", {.outputs = 5});
  softmax_cross_entropy(batch_norm(scores, "bn"), graph.input({4, 1, 1, 1}, "labels"), "loss");
  return graph;
}

/// A network with batch norm, residual adds, a pool and a fully connected op, on enough numbers for small errors.
Graph residual() {
  Graph graph("residual");
  Value x = graph.input({8, 3, 16, 16});
  for (const char* name : {"layer1", "layer2", "layer3"}) {
    const std::string layer = name;
    const Value in = conv(x, layer + ".0", {.channels = 8, .kernel = 1});
    Value y = relu(batch_norm(conv(in, layer + ".1", {.channels = 8, .kernel = 3, .pad = 1}), layer + ".bn1"));
    y = batch_norm(conv(y, layer + ".2", {.channels = 8, .kernel = 3, .pad = 1}), layer + ".bn2");
    x = relu(add(y, in));
  }
  x = max_pool(x, "pool", {.window = 2, .stride = 2});
  fully_connected(global_average_pool(x), "fc", {.outputs = 5});
  return graph;
}

/// A model of half precision with exact arithmetic: rounds the results of an f64 plan's units to `dtype`.
auto rounding_to(DType dtype) {
  return [dtype](const Spec& spec, const Lowered::Step& step) -> KernelHook {
    if (is_loss(spec.op)) return {};
    return [dtype, forward = step.covers(Pass::forward) || step.covers(Pass::recompute)](const Args& args) {
      const auto round = [&](const Tensor& tensor) {
        write(backend().device(), tensor, rounded(read(backend().device(), tensor), dtype));
      };
      if (forward) round(args.y);
      for (const Tensor& dx : args.dx)
        if (!forward && dx) round(dx);
    };
  };
}

/// Stores the y of unit number `unit` in the wrong 16-bit type.
auto wrong_type_of(std::size_t unit) {
  return [left = unit](const Spec&, const Lowered::Step& step) mutable -> KernelHook {
    if (!step.covers(Pass::forward) || left-- != 0) return {};
    return [](const Args& args) {
      const Values values = read(backend().device(), args.y);
      Tensor other = args.y;
      other.dtype = other.dtype == DType::f16 ? DType::bf16 : DType::f16;
      write(backend().device(), other, values);
    };
  };
}

Options in(DType dtype, std::uint64_t seed) { return {.dtype = dtype, .seed = seed}; }

/// The output and gradients of a plan whose inputs and dy are rounded to the type `values`.
Outcome run_on(const Graph& graph, Backend& with, DType dtype, std::uint64_t seed, DType values) {
  Plan plan(graph, with, in(dtype, seed));
  Device& device = with.device();
  for (const Tensor& tensor : {plan.input(), plan.output_gradient()})
    write(device, tensor, rounded(read(device, tensor), values));
  return run(plan);
}

/// The norms of the errors of the output and of all gradients.
std::pair<double, double> errors(const Outcome& got, const Outcome& want) {
  double output = 0, gradients = 0;
  const auto add = [](double& sum, const Values& a, const Values& b) {
    for (std::size_t i = 0; i < a.size(); ++i) sum += std::isfinite(a[i]) ? (a[i] - b[i]) * (a[i] - b[i]) : 1e300;
  };
  add(output, got.output, want.output);
  for (std::size_t i = 0; i < want.gradients.size(); ++i) add(gradients, got.gradients[i], want.gradients[i]);
  return {std::sqrt(output), std::sqrt(gradients)};
}

}  // namespace

TEST_CASE("in half precision values and their gradients have 16 bits, and tensors that need more precision are f32") {
  for (const DType dtype : half_types()) {
    Options options = in(dtype, 1);
    options.optimiser = Adam{};
    const Graph graph = reviews();
    const Plan plan(graph, backend(), options);
    for (const char* name : {"global_average_pool", "fc", "bn"}) CHECK(plan.value(name).dtype == dtype);
    for (const char* name : {"fc", "bn"}) CHECK(plan.gradient(name).dtype == dtype);
    for (const Tensor& tensor : {plan.input("ids"), plan.input("labels"), plan.output(), plan.output_gradient()})
      CHECK(tensor.dtype == DType::f32);
    for (const std::string& name : plan.parameter_names()) {
      CHECK(plan.parameter(name).dtype == DType::f32);
      CHECK(plan.parameter_gradient(name).dtype == DType::f32);
      CHECK(plan.optimiser_state(name + ".mean").dtype == DType::f32);
    }
    CHECK(plan.state("bn.running_mean").dtype == DType::f32);
    CHECK(plan.state("drop.step").dtype == DType::u64);
    const Plan f32(graph, backend(), {.optimiser = Adam{}});
    CHECK(plan.memory().parameters == f32.memory().parameters);
    CHECK(plan.memory().optimiser == f32.memory().optimiser);
    CHECK(plan.memory().values < f32.memory().values);
  }
}

TEST_CASE("whole numbers are f32 through slices and joins, and so are values that are computed from a loss") {
  Graph graph("mixed");
  const Value both = graph.input({2, 2, 4, 1}, "both");
  const Value words = embedding(slice(both, "ids", {.first = 0, .count = 1}), "words", {9, 3});
  const Value rest = relu(slice(both, "rest", {.first = 1, .count = 1}), "positive");
  const Value x = relu(concat({words, rest}, "x"), "relu");
  const Value scores = fully_connected(x, "fc", {.outputs = 4});
  const Value labels = graph.input({2, 1, 1, 1}, "labels");
  add(softmax_cross_entropy(scores, labels, "loss"), softmax_cross_entropy(scores, labels, "again"), "sum");
  for (const DType type : {DType::f32, DType::f64, DType::bf16}) {
    Options options = in(type, 1);
    options.fuse = false;
    const Plan plan(graph, backend(), options);
    for (const Node& node : graph.nodes()) {
      INFO(node.name);
      const bool wide = node.name == "both" || node.name == "ids" || node.name == "labels" || node.name == "loss" ||
                        node.name == "again" || node.name == "sum";
      CHECK(plan.value(node.name).dtype == (wide ? parameter_dtype(type) : type));
    }
  }
  for (const DType type : half_types()) {  // slices are no views here, because a view cannot cast
    Options apart = in(type, 1);
    apart.keep_values = true;
    Plan plan(graph, backend(), in(type, 1)), plain(graph, backend(), apart);
    check_same(run(plan), run(plain), 0);
  }
}

TEST_CASE("a value that is given twice gets the sum of both gradients in half precision") {
  for (const DType type : half_types()) {
    Graph graph("square");
    const Value x = graph.input({2, 3, 2, 2}, "x");
    multiply(x, x, "square");
    Options options = in(type, 1);
    options.input_gradient = true;
    Plan plan(graph, backend(), options);
    const Values x_values = integers(plan.input().shape, 1), dy = integers(plan.input().shape, 2);
    write(plan, plan.input(), x_values);
    write(plan, plan.output_gradient(), dy);
    const Values got = run(plan).gradients.front();
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == 2 * x_values[i] * dy[i]);
  }
}

TEST_CASE("ids above 256 are exact in bf16, and above 2048 in f16") {
  for (const DType dtype : half_types()) {
    const Graph graph = reviews();
    const Values ids = {257, 258, 259, 511, 513, 1000, 2047, 2049, 2051, 2999, 0,  1,
                        2,   3,   4,   5,   6,   7,    8,    9,    10,   11,   12, 13};
    Options unfused = in(dtype, 1);
    unfused.fuse = false;
    unfused.keep_values = true;
    Plan kept(graph, backend(), unfused);
    write(kept, kept.input("ids"), ids);
    kept.forward();
    const Values table = rounded(read(kept, kept.parameter("words.weight")), dtype);
    const Values rows = read(kept, kept.value("words"));
    for (std::size_t n = 0; n < 4; ++n)
      for (std::size_t f = 0; f < 3; ++f)
        for (std::size_t t = 0; t < 6; ++t)
          CHECK(rows[(3 * n + f) * 6 + t] == table[3 * static_cast<std::size_t>(ids[6 * n + t]) + f]);
  }
}

TEST_CASE("plans of random graphs in half precision have the same bits with and without shared memory", "[random]") {
  Dice dice(seed() ^ 0x8A1F);
  const int rounds = backend().name() == "eigen" ? 40 : 5;
  for (int round = 0; round < rounds; ++round)
    for (const DType dtype : half_types()) {
      const Graph graph = random_graph(dice, dice(3, 14));
      Options options = in(dtype, static_cast<std::uint64_t>(round));
      draw_options(dice, options);
      Options apart = options;
      apart.keep = Keep::all;
      apart.keep_values = true;
      INFO("seed " << seed() << ", round " << round << ", " << to_string(dtype));
      Plan plan(graph, backend(), options), plain(graph, backend(), apart);
      for (int pass = 0; pass < 2; ++pass) check_same(run(plan), run(plain), 0);
      CHECK(predict_memory(graph, backend(), options).total() == plan.memory().total());
      // A recomputed step may need a large workspace, such as cuBLAS's, while more blocks are alive.
      if (options.keep == Keep::all || backend().name() == "eigen") CHECK(plan.memory().arena <= plain.memory().arena);
    }
}

TEST_CASE("plans on cuda's kernels have the same bits in nhwc and nchw, in f32 and in half precision") {
  if (!backend().name().starts_with("cuda")) return;  // eigen refuses nhwc, and cuDNN has other kernels for it
  Graph maps("maps");
  Value x = relu(conv(maps.input({3, 4, 9, 10}), "conv", {.channels = 6, .kernel = 3, .pad = 1}));
  x = concat({max_pool(x, "max", {.window = 3, .stride = 1, .pad = 1}),
              average_pool(x, "mean", {.window = 3, .stride = 1, .pad = 1}),
              slice(x, "part", {.first = 1, .count = 2})});
  x = dropout(lrn(batch_norm(x, "bn"), "lrn"), "drop");
  fully_connected(global_average_pool(hard_sigmoid(x)), "fc", {.outputs = 3});
  const Graph deep = residual();
  Graph losses("losses");  // its output is a value of f32
  const Value labels = losses.input({2, 1, 1, 1}, "labels");
  const Value scores = fully_connected(losses.input({2, 2, 3, 1}, "x"), "fc", {.outputs = 5});
  add(softmax_cross_entropy(scores, labels, "one"), softmax_cross_entropy(relu(scores), labels, "other"), "sum");
  for (const Graph& graph : {std::cref(maps), std::cref(deep), std::cref(losses)})
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      INFO(graph.name() << " in " << to_string(dtype));
      Options options = in(dtype, 5);
      Plan planes(graph, backend(), options);
      options.layout = Layout::nhwc;
      Plan pixels(graph, backend(), options);
      copy_parameters(planes, pixels);
      for (const Node& node : graph.nodes())
        if (std::holds_alternative<Input>(node.op))
          write(pixels, pixels.input(node.name), read(planes, planes.input(node.name)));
      write(pixels, pixels.output_gradient(), read(planes, planes.output_gradient()));
      check_same(run(pixels), run(planes), 0);
      CHECK(predict_memory(graph, backend(), options).total() == pixels.memory().total());
    }
}

TEST_CASE("logits and gradients in half precision have errors as if every value were rounded once") {
  const auto inception = [] { return nets::build("inception_v1", {.batch = 4, .image = 32, .width_divisor = 16}); };
  for (const DType dtype : half_types())
    for (const bool joins : {true, false}) {
      const Graph graph = joins ? residual() : inception();
      double output = 0, gradients = 0, model_output = 0, model_gradients = 0, wrong_gradients = 0;
      for (std::uint64_t key = 1; key <= 10; ++key) {
        WrappedBackend rounding(backend()), wrong(backend());
        rounding.after = rounding_to(dtype);
        wrong.after = wrong_type_of(key);
        const Outcome exact = run_on(graph, backend(), DType::f64, key, dtype);
        const auto [y, dw] = errors(run_on(graph, backend(), dtype, key, dtype), exact);
        const auto [model_y, model_dw] = errors(run_on(graph, rounding, DType::f64, key, dtype), exact);
        output += y, gradients += dw, model_output += model_y, model_gradients += model_dw;
        wrong_gradients += errors(run_on(graph, wrong, dtype, key, dtype), exact).second;
      }
      INFO(graph.name() << " in " << to_string(dtype) << ": errors " << output << " and " << gradients
                        << ", of the model " << model_output << " and " << model_gradients
                        << ", of a value in the wrong type " << wrong_gradients);
      // Dot products of bf16 pairs also round weights, which adds an independent error of the same size.
      const bool pairs = dtype == DType::bf16 && backend().describe().find("-v4-") != std::string::npos;
      const double most = pairs ? 1.5 * std::sqrt(2.0) : 1.5;
      CHECK(model_output > 0);
      CHECK(output < most * model_output);
      CHECK(gradients < most * model_gradients);
      CHECK(wrong_gradients > 5 * model_gradients);
    }
}

TEST_CASE("a backend without half precision refuses it before it allocates, and names itself, the op and the type") {
  for (const std::string& name : backend_names()) {
    if (!name.starts_with("cudnn")) continue;
    std::shared_ptr<Backend> made;
    try {
      made = make_backend(name);
    } catch (const Unsupported&) {
      continue;  // this build lacks the backend
    }
    for (const DType dtype : {DType::f16, DType::bf16})
      CHECK_THROWS_MATCHES(predict_memory(residual(), *made, in(dtype, 1)), Unsupported,
                           Says(name + ": conv(8, 1x1): no " + std::string(to_string(dtype))));
  }
}

TEST_CASE("a plan in f32 may share the parameters of a plan in half precision") {
  for (const DType dtype : half_types()) {
    const Graph graph = nets::build("resnet18", {.batch = 2, .image = 32, .width_divisor = 16});
    const Plan half(graph, backend(), in(dtype, 3));
    Options options = in(DType::f32, 3);
    options.mode = Mode::inference;
    Plan alone(graph, backend(), options);
    options.share = &half;
    Plan sharing(graph, backend(), options);
    CHECK(run(sharing).output == run(alone).output);
    options.dtype = DType::f64;
    CHECK_THROWS_WITH(Plan(graph, backend(), options), ContainsSubstring("element type"));
  }
}
