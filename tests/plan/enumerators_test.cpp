// Enumerators out of range, in all public functions and structs that take one.

#include "lamina/lamina.h"
#include "tests/support/backend.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

/// A value that is not in any enumeration.
template <class Enumeration>
constexpr auto none = static_cast<Enumeration>(77);

Graph net() {
  Graph graph("net");
  conv(graph.input({1, 2, 3, 3}), "conv", {.channels = 2, .kernel = 1});
  return graph;
}

/// Checks that `call` throws a UsageError that names the number.
void check_refused(const std::string& what, const std::function<void()>& call) {
  CAPTURE(what);
  CHECK_THROWS_MATCHES(call(), UsageError, Says("77"));
}

}  // namespace

TEST_CASE("an option out of range is a usage error before anything is planned") {
  const std::vector<std::pair<std::string, std::function<void(Options&)>>> spoiled = {
      {"mode", [](Options& o) { o.mode = none<Mode>; }},
      {"dtype", [](Options& o) { o.dtype = none<DType>; }},
      {"layout", [](Options& o) { o.layout = none<Layout>; }},
      {"keep", [](Options& o) { o.keep = none<Keep>; }},
      {"math", [](Options& o) { o.choice.math = none<Math>; }},
      {"math", [](Options& o) { o.choice_of["conv"].math = none<Math>; }}};
  for (const auto& [what, spoil] : spoiled) {
    Options options;
    spoil(options);
    check_refused(what, [&] { predict_memory(net(), backend(), options); });
    check_refused(what, [&] { planned_units(net(), backend(), options); });
    check_refused(what, [&] { Plan(net(), backend(), options); });
  }
}

TEST_CASE("a unit or a choice with an enumerator out of range is not lowered") {
  const Spec spec = planned_units(net(), backend()).front().spec;
  const auto refused = [&](const std::string& what, const std::function<void(Spec&, Choice&)>& spoil) {
    Spec spoiled = spec;
    Choice choice;
    spoil(spoiled, choice);
    check_refused(what, [&] { backend().lower(spoiled, choice); });
  };
  refused("dtype", [](Spec& s, Choice&) { s.x[0].dtype = none<DType>; });
  refused("dtype", [](Spec& s, Choice&) { s.y.dtype = none<DType>; });
  refused("layout", [](Spec& s, Choice&) { s.w[0].layout = none<Layout>; });
  refused("mode", [](Spec& s, Choice&) { s.mode = none<Mode>; });
  refused("math", [](Spec&, Choice& c) { c.math = none<Math>; });
  CHECK(backend().algorithms(spec, none<Pass>).empty());
}

TEST_CASE("an op, a pass, a tensor or a text with an enumerator out of range is a usage error") {
  const std::vector<Shape> x = {{1, 2, 4, 4}};
  check_refused("rounding", [&] { infer(MaxPool{.window = 2, .stride = 2, .rounding = none<Rounding>}, x); });
  check_refused("rounding", [&] { infer(AveragePool{.window = 2, .stride = 2, .rounding = none<Rounding>}, x); });
  check_refused("by", [&] { infer(Resize{.to = 2, .by = none<ResizeBy>}, x); });
  check_refused("by", [&] { infer(Pad{.before = 1, .after = 1, .by = none<PadBy>}, x); });
  CHECK(to_string(Op(Resize{.to = 2, .by = none<ResizeBy>})) == "resize(2x2, 77)");
  CHECK(to_string(Op(Reduce{none<ReduceBy>})) == "reduce(77)");
  check_refused("axis", [&] { infer(Slice{.axis = none<Axis>, .first = 0, .count = 1}, x); });
  check_refused("axis", [&] { infer(Concat{none<Axis>}, x); });
  check_refused("pass", [&] { cost(Relu{}, x, none<Pass>); });
  check_refused("dtype", [&] { cost(Relu{}, x, Pass::forward, none<DType>); });
  check_refused("dtype", [] { size_of(none<DType>); });
  check_refused("dtype", [] { to_string(none<DType>); });
  check_refused("layout", [] { to_string(none<Layout>); });
  check_refused("pass", [] { to_string(none<Pass>); });
  check_refused("math", [] { to_string(none<Math>); });
  ChoiceKey key;
  key.asked.math = none<Math>;
  check_refused("math", [&] { to_string(key); });
  check_refused("dtype", [] { oracle().peak_flops_per_second(none<DType>); });

  std::vector<float> values(4, 1);
  Tensor tensor{values.data(), {1, 1, 2, 2}, DType::f32, Layout::nchw, 4};
  tensor.dtype = none<DType>;
  check_refused("dtype", [&] { upload(oracle().device(), tensor, std::span<const float>(values)); });
  check_refused("dtype", [&] { download(oracle().device(), std::span<float>(values), tensor); });
  tensor.dtype = DType::f32;
  tensor.layout = none<Layout>;
  check_refused("layout", [&] { upload(oracle().device(), tensor, std::span<const float>(values)); });
  check_refused("layout", [&] { download(oracle().device(), std::span<float>(values), tensor); });
}
