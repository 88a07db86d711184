// Embedding: ids select rows of a table.

#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

Embedding table(int vocabulary, int features) { return {.vocabulary = vocabulary, .features = features}; }

const std::vector<Case> embedding_cases = {
    {"sequences", table(7, 5), {{3, 1, 6, 1}}},
    {"one id per image", table(7, 5), {{9, 1, 1, 1}}},
    {"one row", table(1, 3), {{2, 1, 5, 1}}},
    {"one feature", table(6, 1), {{2, 1, 5, 1}}},
    {"maps of ids", table(20, 9), {{2, 1, 4, 6}}},
    {"few of many rows", table(500, 3), {{2, 1, 5, 1}}},
    {"long sequences", table(11, 70), {{2, 1, 150, 1}}},
    {"many ids", table(90, 3), {{3, 1, 300, 1}}},
    {"inference", table(7, 5), {{3, 1, 6, 1}}, {}, Mode::inference},
    {"mean", table(7, 5), {{3, 1, 6, 1}}, {{GlobalAveragePool{}}}},
    {"mean of one id", table(7, 5), {{4, 1, 1, 1}}, {{GlobalAveragePool{}}}},
    {"mean of a long sequence", table(300, 70), {{3, 1, 150, 1}}, {{GlobalAveragePool{}}}},
    {"mean in inference", table(7, 5), {{3, 1, 6, 1}}, {{GlobalAveragePool{}}}, Mode::inference},
};

}  // namespace

TEST_CASE("embedding, by hand") {
  const Case c{"", table(4, 2), {{1, 1, 3, 1}}};
  check_example(c, {{{2, 0, 2}}, {{1, 2, 3, 4, 5, 6, 7, 8}}, {}, {10, 20, 30, 100, 200, 300}},
                {{5, 1, 5, 6, 2, 6}, {}, {{20, 200, 0, 0, 40, 400, 0, 0}}});
}

TEST_CASE("embedding, by hand: one id per image") {
  check_example({"", table(3, 2), {{3, 1, 1, 1}}}, {{{1, 1, 0}}, {{1, 2, 3, 4, 5, 6}}, {}, {10, 20, 1, 2, 7, 8}},
                {{3, 4, 3, 4, 1, 2}, {}, {{7, 8, 11, 22, 0, 0}}});
}

TEST_CASE("embedding and its mean, by hand: equal neighbouring ids count each time") {
  const Case c{"", table(3, 2), {{2, 1, 4, 1}}, {{GlobalAveragePool{}}}};
  if (!make_spec(backend(), c, {})) return;
  check_example(c, {{{0, 0, 0, 2, 1, 0, 0, 1}}, {{4, 8, 12, 16, 20, 24}}, {}, {4, 8, 40, 80}},
                {{8, 12, 8, 12}, {}, {{23, 46, 20, 40, 1, 2}}});
}

TEST_CASE("an id out of range makes the mean of its image NaN, but no other mean") {
  const Case c{"", table(3, 1), {{2, 1, 4, 1}}, {{GlobalAveragePool{}}}};
  if (!make_spec(backend(), c, {})) return;
  for (const double id : {3.0, -1.0, 0.5, 1e30, std::numeric_limits<double>::quiet_NaN()})
    for (const DType dtype : element_types()) {
      INFO("id " << id << " in " << to_string(dtype));
      const Feed feed{{{2, id, id, 0, 1, 1, 1, 1}}, {{1, 2, 3}}, {}, {8, 4}};
      const Result result = run_case(c, feed, {.dtype = dtype});
      CHECK(std::isnan(result.y[0]));
      CHECK(result.y[1] == 2);
      CHECK(result.dw[0] == Values{2, 4, 2});
    }
}

TEST_CASE("an id out of range gives NaN, adds to no gradient and changes nothing else") {
  for (const double id : {3.0, -1.0, 0.5, 16777216.0, 1e30, -1e30, std::numeric_limits<double>::quiet_NaN(),
                          std::numeric_limits<double>::infinity()})
    for (const DType dtype : element_types())
      for (const Shape& shape : {Shape{1, 1, 3, 1}, Shape{3, 1, 1, 1}}) {
        INFO("id " << id << " in " << to_string(dtype) << ", ids " << to_string(shape));
        const Feed feed{{{2, id, 0}}, {{1, 2, 3}}, {}, {10, 20, 40}};
        const Result result = run_case({"", table(3, 1), {shape}}, feed, {.dtype = dtype});
        CHECK(result.y[0] == 3);
        CHECK(std::isnan(result.y[1]));
        CHECK(result.y[2] == 1);
        CHECK(result.dw[0] == Values{40, 0, 10});
      }
}

TEST_CASE("a batch without a valid id has a gradient of zeros") {
  const Feed feed{{{-1, 9, 9}}, {{1, 2, 3}}, {}, {10, 20, 40}, {}, {{5, 6, 7}}};
  const Case c{"", table(3, 1), {{1, 1, 3, 1}}};
  CHECK(run_case(c, feed, {}).dw[0] == Values{0, 0, 0});
  CHECK(run_case(c, feed, {.adds = true}).dw[0] == Values{5, 6, 7});
}

TEST_CASE("an id that fills most of a batch, as padding does, adds all its gradients") {
  const Case c{"", table(50, 3), {{4, 1, 300, 1}}};
  Feed feed = make_feed(c, 3, Fill::integers);
  for (std::size_t i = 0; i < feed.x[0].size(); ++i)
    if (i % 5 != 0) feed.x[0][i] = 0;
  const Result want = reference(c, feed);
  for (const DType dtype : element_types()) CHECK(run_case(c, feed, {.dtype = dtype}).dw[0] == want.dw[0]);
}

TEST_CASE("embedding adds whole numbers exactly") {
  for (const Case& c : embedding_cases)
    if (c.mode == Mode::training && c.tail.empty()) check_integers(c);  // a mean is not exact, because it divides
}

TEST_CASE("embedding agrees with the oracle") {
  for (const Case& c : embedding_cases) CHECK((check_against_oracle(c) || !c.tail.empty()));
}

TEST_CASE("embedding has the gradients of finite differences") { check_all_differences(embedding_cases); }
