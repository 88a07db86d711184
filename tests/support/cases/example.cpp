// Runs cases on the backend under test: examples by hand, and single runs.

#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

namespace lamina::test {
namespace {

void check_equal(const std::string& what, const Values& got, const Values& want, double eps) {
  if (!want.empty()) check_close(what, got, want, {Values(want.size(), largest_of(want)), 16}, eps);
}

}  // namespace

void check_example(const Case& c, const Feed& feed, const Result& want) {
  for (const DType dtype : element_types()) {
    const auto made = make_spec(backend(), c, {.dtype = dtype});
    if (!made) continue;
    const Spec& spec = *made;
    Feed complete = feed;
    if (complete.dy.empty()) complete.dy = zeros(spec.y.shape);
    for (const std::string& algorithm : algorithms(spec, Pass::forward)) {
      INFO(to_string(c) << ' ' << to_string(dtype) << " by " << algorithm);
      const Result got = run_unit(backend(), spec, {.algorithm = {algorithm, "", ""}}, complete);
      check_equal("y", got.y, want.y, epsilon(dtype));
      for (std::size_t i = 0; i < want.dx.size(); ++i)
        check_equal("dx " + std::to_string(i), got.dx[i], want.dx[i], epsilon(dtype));
      for (std::size_t i = 0; i < want.dw.size(); ++i)
        check_equal("dw " + std::to_string(i), got.dw[i], want.dw[i], epsilon(dtype));
      for (std::size_t i = 0; i < want.state.size(); ++i)
        check_equal("state " + std::to_string(i), got.state[i], want.state[i], epsilon(dtype));
    }
  }
}

Result run_case(const Case& c, const Feed& feed, const Conditions& conditions) {
  return run_unit(backend(), *make_spec(backend(), c, conditions), {}, feed);
}

}  // namespace lamina::test
