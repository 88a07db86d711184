// The suite that every backend runs.

#include "tests/support/cases/suite.h"

#include <sstream>

#include "lib/backends/common/lowering.h"
#include "lib/backends/common/on_copies.h"
#include "tests/support/cases/chain.h"
#include "tests/support/cases/plans.h"
#include "tests/support/catch.h"
#include "tests/support/numbers/winograd_bounds.h"

namespace lamina::test {
namespace {
/// Random labels or ids. Some labels are -1, which means ignored.
Values draw_whole_numbers(const Op& op, const Shape& shape, std::int64_t count, std::uint64_t key) {
  Dice dice(key);
  Values values(static_cast<std::size_t>(shape.count()));
  const bool labels =
      std::holds_alternative<SoftmaxCrossEntropy>(op) || std::holds_alternative<SigmoidCrossEntropy>(op);
  for (double& value : values) value = labels && dice.chance(0.1) ? -1 : dice(0, static_cast<int>(count) - 1);
  return values;
}

Values draw_input(const Op& op, const Shape& shape, std::uint64_t key, Fill fill) {
  if (std::holds_alternative<MaxPool>(op)) return permutation(shape, key);
  if (fill == Fill::integers) return integers(shape, key);
  const auto* const its = std::get_if<Pointwise>(&op);
  if (its != nullptr &&
      (its->function == Function::log || its->function == Function::sqrt || its->function == Function::pow))
    return absolute(apart_from_zero(shape, key));
  return std::holds_alternative<Relu>(op) || op == Op(Binary{BinaryFunction::divide}) ? apart_from_zero(shape, key)
                                                                                      : normal(shape, key);
}

void draw_stage(Feed& feed, const Stage& stage, bool first, std::uint64_t key, Fill fill) {
  const auto draw = [&](const Shape& shape) {
    return fill == Fill::integers ? integers(shape, ++key) : normal(shape, ++key);
  };
  for (std::size_t i = first ? 0 : 1; i < stage.c.x.size(); ++i)
    if (const std::int64_t count = whole_numbers(stage.c.op, stage.c.x, i); count > 0)
      feed.x.push_back(draw_whole_numbers(stage.c.op, stage.c.x[i], count, ++key));
    else
      feed.x.push_back(draw_input(stage.c.op, stage.c.x[i], ++key, fill));
  const Inferred inferred = infer(stage.c.op, stage.c.x);
  for (const Shape& shape : inferred.params) feed.w.push_back(draw(shape));
  for (std::size_t i = 0; i < inferred.state.size(); ++i) {
    const bool is_factor = std::holds_alternative<ScaleShift>(stage.c.op);
    Values values = is_factor ? draw(inferred.state[i]) : normal(inferred.state[i], ++key);
    for (double& value : values) {
      if (std::holds_alternative<Dropout>(stage.c.op)) value = 5;  // the step of a dropout
      if (std::holds_alternative<BatchNorm>(stage.c.op) && i == 1)
        value = static_cast<float>(std::abs(value) + 0.5);  // a variance
    }
    feed.state.push_back(values);
  }
}

/// Whether every ReLU inside the chain gets numbers that are further from 0 than any rounding. A library may round to
/// half precision before the ReLU.
bool clear_of_kinks(const std::vector<Stage>& stages, const Feed& feed, DType dtype) {
  const auto is_relu = [](const Stage& stage) { return std::holds_alternative<Relu>(stage.c.op); };
  if (std::none_of(stages.begin() + 1, stages.end(), is_relu)) return true;
  const double rounding = is_half(dtype) && decided_by_library() ? 0.03 : 1e-3;
  const std::vector<Values> values = forward_values(stages, feed);
  for (std::size_t i = 1; i < stages.size(); ++i) {
    if (!is_relu(stages[i])) continue;
    for (const double value : values[i - 1])
      if (std::abs(value) < rounding) return false;
  }
  return true;
}

bool any_winograd(const Algorithms& algorithms) {
  return std::ranges::any_of(algorithms, [](const std::string& name) { return winograd_named(name).has_value(); });
}

/// The bounds of one case and feed, by algorithms.
class CaseBounds {
 public:
  CaseBounds(const Case& c, const Feed& feed) : case_(c), feed_(feed) {}

  const Bounds& by(const Algorithms& algorithms) {
    const Algorithms distinct = any_winograd(algorithms) ? algorithms : Algorithms{};
    const auto [found, is_new] = known_.try_emplace(distinct);
    if (is_new) found->second = chain_bounds(case_, feed_, distinct);
    return found->second;
  }

 private:
  const Case& case_;
  const Feed& feed_;
  std::map<Algorithms, Bounds> known_;
};

/// Adds to the bound of dx: a gradient that is computed from a rounded y may have this rounding twice in a term, as in
/// y (1 - y) dy.
Bound with_rounded_y(const Spec& spec, Bound dx) {
  const bool sum = std::holds_alternative<Add>(spec.op) && !spec.tail.empty();
  const auto* const its = std::get_if<Pointwise>(sum ? &spec.tail.back() : &spec.op);
  const auto is_any_of = [&](auto... functions) { return its != nullptr && ((its->function == functions) || ...); };
  if (is_half(spec.y.dtype) && (std::holds_alternative<Softmax>(spec.op) ||
                                is_any_of(Function::sigmoid, Function::tanh, Function::elu, Function::celu,
                                          Function::softplus, Function::exp, Function::sqrt)))
    dx.count += 2.02 * unit_roundoff(spec.y.dtype) / epsilon(spec.y.dtype);
  return dx;
}

/// Adds to a bound: the algorithm bf16_gemm rounds each weight to bf16.
Bound with_rounded_weights(const std::string& algorithm, Bound bound) {
  if (algorithm == "bf16_gemm") bound.count += 1.01 * unit_roundoff(DType::bf16) / epsilon(DType::bf16);
  return bound;
}

/// Adds a library's roundings to half precision to a bound. A library also rounds y before a bias, an Add and a ReLU,
/// computes dx from a rounded y, and rounds parameter gradients. The feed's weights are already rounded.
Bound with_library_rounding(const Spec& spec, Bound bound, double roundings) {
  if (decided_by_library() && (is_half(spec.y.dtype) || is_half(spec.x[0].dtype)))
    bound.count += 1.02 * roundings * unit_roundoff(half_type(spec)) / epsilon(DType::f32);
  return bound;
}

Result compare(const Spec& spec, const Choice& choice, const Feed& feed, const Result& want, CaseBounds& all_bounds,
               const Sharing& sharing = {}) {
  const Algorithms taken = algorithms_of(backend(), spec, choice);
  const Bounds& bounds = all_bounds.by(taken);
  Result got = run_unit(backend(), spec, choice, feed, sharing);
  if (std::ranges::any_of(taken, is_unbounded)) return got;
  const double eps = epsilon(spec.y.dtype);
  check_close("y", got.y, want.y, with_rounded_weights(taken[0], with_library_rounding(spec, bounds.y, 3)), eps, {},
              spec.y.dtype);
  for (std::size_t i = 0; i < got.state.size(); ++i)
    check_close("state " + std::to_string(i), got.state[i], want.state[i], bounds.state[i], eps);
  for (std::size_t i = 0; i < got.dx.size(); ++i)
    if (spec.wants_dx[i])
      check_close("dx " + std::to_string(i), got.dx[i], want.dx[i],
                  with_rounded_weights(taken[2], with_library_rounding(spec, with_rounded_y(spec, bounds.dx[i]), 1)),
                  eps, spec.adds_dx[i] ? feed.dx[i] : Values{}, spec.x[i].dtype);
  for (std::size_t i = 0; i < got.dw.size(); ++i)
    check_close("dw " + std::to_string(i), got.dw[i], want.dw[i], with_library_rounding(spec, bounds.dw[i], 1), eps,
                spec.adds_dw ? feed.dw[i] : Values{});
  return got;
}

std::vector<Choice> choices(const Spec& spec) {
  return test::choices(spec, [&](Pass pass) { return algorithms(spec, pass); });
}

std::string to_string(const Choice& choice) {
  return choice.algorithm[0] + "/" + choice.algorithm[1] + "/" + choice.algorithm[2];
}

/// Runs `run`, in which a library may refuse a call. Such a refusal is reported, but is no failure.
void unless_refused_while_running(const std::function<void()>& run) {
  try {
    run();
  } catch (const Unsupported& refusal) {
    if (!decided_by_library()) throw;
    WARN("refused: " << refusal.what());
  }
}

void check_sharing(const Case& c, const Feed& feed, const Result& want, CaseBounds& bounds, DType dtype) {
  const auto made = make_spec(backend(), c, {.dtype = dtype});
  if (!made || (decided_by_library() && refused(*made))) return;
  const Spec& spec = *made;
  const Choice fixed{.deterministic = true};
  const Result first = compare(spec, fixed, feed, want, bounds);
  const Result second = run_unit(backend(), spec, fixed, feed);
  INFO("the same bits on every run");
  CHECK((first == second));
  for (int i = 0; i < static_cast<int>(spec.x.size()); ++i) {
    INFO("y may share x, dx may share dy: " << i);
    compare(spec, {}, feed, want, bounds, {.y_in_x = i, .dx_in_dy = -1});
    compare(spec, {}, feed, want, bounds, {.y_in_x = -1, .dx_in_dy = i});
  }
  if (c.mode == Mode::inference) return;
  for (std::size_t unwanted = 0; unwanted < spec.x.size(); ++unwanted) {
    INFO("unwanted dx " << unwanted);
    std::vector<bool> wants(spec.x.size(), true);
    wants[unwanted] = false;
    compare(*make_spec(backend(), c, {.dtype = dtype, .wants = wants}), {}, feed, want, bounds);
  }
}

/// Compares runs in each type with the oracle. The numbers are exact in all these types.
void check_in(const Case& c, const Feed& feed, const std::vector<DType>& types) {
  const Result want = reference(c, feed);
  CaseBounds bounds(c, feed);
  for (const Layout layout : {Layout::nchw, Layout::nhwc})
    for (const DType dtype : types)
      for (const bool pitched : {false, true})
        for (const bool adds : {false, true}) {
          if (adds && c.mode == Mode::inference) continue;
          if (layout == Layout::nhwc && pitched != adds && c.mode == Mode::training) continue;
          const Conditions conditions{dtype, layout, pitched, adds, {}};
          const auto made = make_spec(backend(), c, conditions);
          if (!made) continue;
          const Spec& spec = *made;
          if (pitched && !backend().takes_pitch(spec)) continue;
          const bool may_refuse =
              layout == Layout::nhwc && (dtype == DType::f64 || !backend().name().starts_with("cuda"));
          if ((may_refuse || decided_by_library()) && refused(spec)) continue;
          for (const Choice& choice : choices(spec)) {
            INFO(to_string(conditions) << " by " << to_string(choice));
            unless_refused_while_running([&] { compare(spec, choice, feed, want, bounds); });
          }
        }
  for (const DType dtype : types) unless_refused_while_running([&] { check_sharing(c, feed, want, bounds, dtype); });
}

}  // namespace

std::vector<Choice> choices(const Spec& spec, const std::function<std::vector<std::string>(Pass)>& algorithms) {
  std::vector<Choice> result(1);
  for (const Pass pass : {Pass::forward, Pass::backward_params, Pass::backward_data}) {
    if (spec.mode == Mode::inference && pass != Pass::forward) continue;
    const std::vector<std::string> names = algorithms(pass);
    result.resize(std::max(result.size(), names.size() + 1));
    for (std::size_t i = 0; i < names.size(); ++i) result[i + 1].algorithm[static_cast<std::size_t>(pass)] = names[i];
  }
  return result;
}

Algorithms algorithms_of(Backend& backend, const Spec& spec, const Choice& choice) {
  Algorithms algorithms;
  for (const Lowered::Step& step : backend.lower(spec, choice).steps)
    for (const Pass pass : step.passes)
      if (static_cast<std::size_t>(pass) < algorithms.size())
        algorithms[static_cast<std::size_t>(pass)] = step.algorithm;
  return algorithms;
}

double epsilon(DType dtype) {
  // In f64 the oracle's error is as large as the tested backend's, so the epsilon is doubled.
  return dtype == DType::f64 ? 2 * std::numeric_limits<double>::epsilon()
                             : static_cast<double>(std::numeric_limits<float>::epsilon());
}

Feed make_feed(const Case& c, std::uint64_t key, Fill fill, DType dtype) {
  const std::vector<Stage> stages = stages_of(c);
  for (std::uint64_t draw = 0; draw < 1000; ++draw) {
    Feed feed;
    std::uint64_t k = key * 1000003 + draw * 7919;
    for (std::size_t i = 0; i < stages.size(); ++i) draw_stage(feed, stages[i], i == 0, k += 101, fill);
    for (std::size_t i = 0; i < feed.x.size(); ++i)
      feed.x[i] = rounded(feed.x[i], i < c.x.size() ? input_dtype(c.op, c.x, i, dtype) : dtype);
    // A library and bf16_gemm round weights. Before a ReLU this could move numbers across its kink.
    if (is_half(dtype) && (decided_by_library() || stages.size() > 1))
      for (Values& w : feed.w) w = rounded(w, dtype);
    if (!clear_of_kinks(stages, feed, dtype)) continue;
    const auto like = [&](const std::vector<Values>& values) {
      std::vector<Values> result;
      for (const Values& v : values) {
        const Shape shape{1, 1, 1, static_cast<int>(v.size())};
        result.push_back(fill == Fill::integers ? integers(shape, ++k) : normal(shape, ++k));
      }
      return result;
    };
    const Shape y = infer(stages.back().c.op, stages.back().c.x).y;
    feed.dy = fill == Fill::integers ? integers(y, ++k) : normal(y, ++k);
    feed.dy = rounded(feed.dy, output_dtype(stages.back().c.op, dtype));
    feed.dx = like(feed.x);
    for (Values& dx : feed.dx) dx = rounded(dx, dtype);
    feed.dw = like(feed.w);
    return feed;
  }
  FAIL("no draw of inputs keeps clear of the kinks of " << to_string(c));
  return {};
}

Feed make_large_feed(const Case& c, std::uint64_t key) {
  Case head = c;
  std::erase_if(head.tail, [](const Link& link) { return !std::holds_alternative<GlobalAveragePool>(link.op); });
  Feed feed = make_feed(head, key);
  for (const Link& link : c.tail)
    if (std::holds_alternative<Add>(link.op)) {
      feed.x.push_back(normal(c.x[0], key + 1));
      feed.dx.push_back(normal(c.x[0], key + 2));
    }
  return feed;
}

void check_close(const std::string& what, const Values& got, const Values& want, const Bound& bound, double eps,
                 const Values& old, DType dtype) {
  REQUIRE(got.size() == want.size());
  REQUIRE(bound.terms.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double before = old.empty() ? 0 : old[i];
    const double count = old.empty() ? bound.count : std::max(bound.count, 8.0);
    double allowed = count * eps * (bound.terms[i] + std::abs(before));
    if (is_half(dtype)) allowed += unit_roundoff(dtype) * (std::abs(want[i] + before) + allowed);
    if (dtype == DType::f16) allowed += 0x1p-25;
    if (std::abs(got[i] - (want[i] + before)) <= allowed) continue;
    if (std::isinf(got[i]) && got[i] == want[i]) continue;  // inf - inf would be NaN
    std::ostringstream text;
    text.precision(17);
    text << what << '[' << i << "] of " << got.size() << " is " << got[i] << ", not " << want[i] + before << " +- "
         << allowed;
    FAIL_CHECK(text.str());
    return;
  }
  SUCCEED();
}

bool check_against_oracle(const Case& c, std::uint64_t key) {
  INFO(to_string(c));
  if (!make_spec(backend(), c, {}) && !make_spec(backend(), c, {.dtype = DType::f32})) return false;
  check_in(c, make_feed(c, key), element_types());
  std::vector<DType> halves{DType::f16, DType::bf16};
  // The emulator is slow, so on it a case runs in only one of the two types.
  if (backend().name() == "cuda-host") halves = {halves[to_string(c).size() % 2]};
  for (const DType half : halves) check_in(c, make_feed(c, key, Fill::normal, half), {half});
  return true;
}

void check_integers(const Case& c, std::uint64_t key) {
  INFO(to_string(c) << ", in whole numbers");
  const Feed feed = make_feed(c, key, Fill::integers);
  const Result want = reference(c, feed);
  const auto sum = [](bool adds, const Values& a, const Values& b) { return adds ? plus(a, b) : a; };
  for (const DType dtype : element_types())
    for (const bool adds : {false, true}) {
      if (adds && c.mode == Mode::inference) continue;
      const Conditions conditions{dtype, Layout::nchw, false, adds, {}};
      const auto made = make_spec(backend(), c, conditions);
      if (!made || (decided_by_library() && refused(*made))) continue;
      const Spec& spec = *made;
      for (const Choice& choice : choices(spec)) {
        const Algorithms taken = algorithms_of(backend(), spec, choice);
        if (any_winograd(taken) || std::ranges::any_of(taken, is_unbounded))
          continue;  // its transforms divide, so it is not exact
        INFO(to_string(conditions) << " by " << to_string(choice));
        unless_refused_while_running([&] {
          const Result got = run_unit(backend(), spec, choice, feed);
          CHECK(got.y == want.y);
          for (std::size_t i = 0; i < got.dx.size(); ++i) CHECK(got.dx[i] == sum(adds, want.dx[i], feed.dx[i]));
          for (std::size_t i = 0; i < got.dw.size(); ++i) CHECK(got.dw[i] == sum(adds, want.dw[i], feed.dw[i]));
        });
      }
    }
}

Graph graph_of(const Case& c) {
  Graph graph("case");
  std::vector<Value> x;
  for (const Shape& shape : c.x) x.push_back(graph.input(shape, "x" + std::to_string(x.size())));
  Value value = apply(c.op, x, "op");
  int inputs = static_cast<int>(x.size()), links = 0;
  for (const Link& link : c.tail) {
    std::vector<Value> operands{value};
    if (std::holds_alternative<Add>(link.op))
      operands.insert(operands.begin() + (1 - link.operand),
                      graph.input(value.shape(), "x" + std::to_string(inputs++)));
    value = apply(link.op, operands, "tail" + std::to_string(links++));
  }
  return graph;
}

void check_differences(const Case& c, const GradientCheck& how) {
  INFO(to_string(c) << ", by differences");
  const Graph graph = graph_of(c);
  for (const bool fuse : {true, false}) {
    if (!fuse && c.tail.empty()) continue;
    const Options options{.dtype = DType::f64, .fuse = fuse};
    if (decided_by_library() && refused(graph, options)) continue;
    INFO((fuse ? "fused" : "unfused"));
    check_passed(check_gradients(graph, one_thread(), options, how));
  }
}

void check_all_against_oracle(const std::vector<Case>& cases) {
  for (const Case& c : cases) CHECK(check_against_oracle(c));
}

void check_all_integers(const std::vector<Case>& cases) {
  for (const Case& c : cases) check_integers(c);
}

void check_all_differences(const std::vector<Case>& cases) {
  for (const Case& c : cases)
    if (c.mode == Mode::training) check_differences(c);
}

void check_result(const Result& got, const Result& want, const Bounds& bounds, double epsilon, const Feed* old,
                  DType dtype) {
  const auto before = [&](const std::vector<Values> Feed::*gradients, std::size_t i) {
    return old == nullptr ? Values{} : (old->*gradients)[i];
  };
  check_close("y", got.y, want.y, bounds.y, epsilon, {}, dtype);
  for (std::size_t i = 0; i < got.dw.size(); ++i)
    check_close("dw", got.dw[i], want.dw[i], bounds.dw[i], epsilon, before(&Feed::dw, i));
  for (std::size_t i = 0; i < got.dx.size(); ++i)
    if (!got.dx[i].empty())
      check_close("dx", got.dx[i], want.dx[i], bounds.dx[i], epsilon, before(&Feed::dx, i), dtype);
}

}  // namespace lamina::test
