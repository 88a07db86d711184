// Picking one algorithm among several, as a Choice demands.

#include "lib/backends/common/algorithms.h"
#include "tests/support/catch.h"

using namespace lamina;

namespace {

Alternative alternative(const char* name, double max_error, std::size_t workspace_bytes, bool deterministic = true) {
  return {name, max_error, [=] {
            Lowered::Step made = step(
                {Pass::forward}, name, [](const Args&) {}, workspace_bytes);
            made.deterministic = deterministic;
            return made;
          }};
}

const std::vector<Alternative> alternatives = {alternative("hasty", 1e-2, 100, false), alternative("large", 1e-4, 1000),
                                               alternative("exact", 1e-7, 0)};

Lowered::Step taken(const Choice& choice) { return pick("unit", Pass::forward, choice, alternatives); }

}  // namespace

TEST_CASE("without a name, the first alternative that respects every demand is taken") {
  CHECK(taken({}).algorithm == "hasty");
  CHECK(taken({.deterministic = true}).algorithm == "large");
  CHECK(taken({.max_error = 1e-4}).algorithm == "large");
  CHECK(taken({.max_error = 9e-5}).algorithm == "exact");
  CHECK(taken({.deterministic = true, .workspace_limit = 999}).algorithm == "exact");
  CHECK(taken({.workspace_limit = 99}).algorithm == "exact");
}

TEST_CASE("a step says what its algorithm guarantees") {
  CHECK(taken({}).max_error == 1e-2);
  CHECK(taken({.algorithm = {"exact", "", ""}}).max_error == 1e-7);
}

TEST_CASE("a step says why its algorithm is taken, if there are several") {
  CHECK(taken({.algorithm = {"exact", "", ""}}).reason == "named");
  CHECK_THAT(taken({}).reason, ContainsSubstring("rule") && ContainsSubstring("large, exact"));
  CHECK_THAT(taken({.max_error = 1e-4}).reason, ContainsSubstring("limits") && ContainsSubstring("hasty guarantees"));
  std::vector<Alternative> reasoned = alternatives;
  reasoned.front().reason = "there is no time";
  CHECK_THAT(pick("unit", Pass::forward, {}, reasoned).reason, ContainsSubstring("there is no time"));
  CHECK(pick("unit", Pass::forward, {}, {alternative("only", 0, 0)}).reason.empty());
}

TEST_CASE("a named algorithm that breaks a demand is refused with the reason") {
  CHECK(taken({.algorithm = {"large", "", ""}}).algorithm == "large");
  CHECK_THROWS_MATCHES(taken({.algorithm = {"hasty", "", ""}, .deterministic = true}), Unsupported,
                       Says("hasty may give other bits"));
  CHECK_THROWS_WITH(taken({.algorithm = {"large", "", ""}, .workspace_limit = 1}), ContainsSubstring("1000 bytes"));
  CHECK_THROWS_WITH(taken({.algorithm = {"large", "", ""}, .max_error = 1e-6}), ContainsSubstring("large guarantees"));
  CHECK_THROWS_WITH(taken({.max_error = 1e-9}),
                    ContainsSubstring("hasty guarantees") && ContainsSubstring("exact guarantees"));
}

TEST_CASE("an unknown name is wrong use, and the known algorithms are named") {
  CHECK_THROWS_MATCHES(taken({.algorithm = {"exakt", "", ""}}), UsageError, Says("hasty, large, exact"));
}
