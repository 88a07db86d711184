// Internals of LSTM and GRU in the backend "eigen": the functions of their gates, and every instruction set on widths
// around multiples of a vector.

#include "tests/eigen/sets.h"
#include "tests/support/cases/suite.h"
#include "tests/support/numbers/recurrent_bounds.h"

using namespace lamina::test;

namespace {

/// Positive and negative powers of two and numbers between them. The largest are in the range where both functions are
/// constant.
template <class T>
std::vector<T> arguments() {
  std::vector<T> all = {0};
  for (int exponent = std::numeric_limits<T>::min_exponent; exponent < 11; ++exponent)
    for (const double factor : {1.0, 1.1, 1.25, 1.4142, 1.7})
      all.push_back(static_cast<T>(std::ldexp(factor, exponent)));
  for (int i = 1; i < 40000; ++i) all.push_back(static_cast<T>(i * 0.0007));
  for (std::size_t i = 0, count = all.size(); i < count; ++i) all.push_back(-all[i]);
  return all;
}

/// Fails at the first result that differs from the exact result by more than 8 u and by more than `slack`.
template <class T, class Function>
void check_function(const std::vector<T>& x, const std::vector<T>& y, const Function& exact, long double slack) {
  const long double unit = std::numeric_limits<T>::epsilon() / 2;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double want = exact(static_cast<long double>(x[i]));
    if (std::abs(static_cast<long double>(y[i]) - want) <= std::max(8 * unit * std::abs(want), slack)) continue;
    FAIL_CHECK(x[i] << " gives " << y[i] << ", not " << static_cast<double>(want));
    return;
  }
  SUCCEED();
}

template <class T>
void check_functions(const eigen::InstructionSet& set) {
  const eigen::ActivationKernels<T>& kernels = set.of<T>().kernels.activations;
  const std::vector<T> x = arguments<T>();
  std::vector<T> y(x.size());
  const auto count = static_cast<std::int64_t>(x.size());
  const long double least = std::numeric_limits<T>::min();
  kernels.logistic(y.data(), x.data(), count);
  check_function(
      x, y, [](long double a) { return 1 / (1 + std::exp(-a)); }, 2 * least);
  kernels.tanh(y.data(), x.data(), count);
  check_function(
      x, y, [](long double a) { return std::tanh(a); }, std::numeric_limits<T>::denorm_min());

  const T huge = std::numeric_limits<T>::infinity();
  const std::vector<T> ends = {huge, -huge, std::numeric_limits<T>::max(), std::numeric_limits<T>::quiet_NaN()};
  std::vector<T> got(ends.size() + 1, 7);
  kernels.logistic(got.data(), ends.data(), 4);
  CHECK((got[0] == 1 && got[1] <= 2 * std::numeric_limits<T>::min() && got[2] == 1 && std::isnan(got[3])));
  kernels.tanh(got.data(), ends.data(), 4);
  CHECK((got[0] == 1 && got[1] == -1 && got[2] == 1 && std::isnan(got[3])));
  CHECK(got[4] == 7);  // nothing after the last element is written
}

}  // namespace

TEST_CASE("the logistic function and tanh have errors of at most 8 roundings on every instruction set") {
  for (const eigen::InstructionSet* set : sets_here()) {
    INFO(set->name);
    check_functions<float>(*set);
    check_functions<double>(*set);
  }
}

TEST_CASE("a recurrent op equals its definition on every instruction set and number of threads") {
  const std::vector<Case> cases = {
      {"", Recurrent{.hidden = 5, .reverse = true}, {{7, 3, 18, 1}}},
      {"", Recurrent{.hidden = 8, .steps = Steps::last}, {{4, 8, 5, 1}}},
      {"", Recurrent{.hidden = 17, .gates = Gates::hard_sigmoid}, {{13, 33, 4, 1}}},
      {"", Recurrent{.hidden = 33, .vocabulary = 6}, {{2, 1, 3, 1}}},
      {"", Recurrent{.hidden = 5, .cell = Cell::gru, .reverse = true}, {{7, 3, 18, 1}}},
      {"", Recurrent{.hidden = 17, .cell = Cell::gru, .gates = Gates::hard_sigmoid}, {{13, 33, 4, 1}}},
      {"", Recurrent{.hidden = 3, .cell = Cell::gru, .vocabulary = 6}, {{2, 1, 3, 1}}},
  };
  for (const Case& c : cases) {
    const Feed feed = make_feed(c, 2);
    const auto [want, bounds] = recurrent_by_definition(c, feed);
    for (const eigen::InstructionSet* set : sets_here())
      for (const int threads : {1, 2, 3}) {
        const auto backend = make_backend("eigen", {.threads = threads, .instruction_set = set->name});
        for (const DType dtype : {DType::f32, DType::f64}) {
          INFO(set->name << ", " << threads << " threads, " << to_string(dtype));
          const Spec spec = *make_spec(*backend, c, {.dtype = dtype});
          const Result got = run_unit(*backend, spec, {}, feed);
          check_result(got, want, bounds, epsilon(dtype));
        }
      }
  }
}
