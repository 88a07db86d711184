// What the number of threads may change: who does which share of an op, but no bit of what comes out.

#include <string>
#include <vector>

#include "support/catch.h"
#include "support/suite.h"

using namespace lamina;
using namespace lamina::test;

namespace {

// Large enough that every thread gets a share: elements beyond the grain, more planes and channels than threads.
const std::vector<Case>& cases() {
  constexpr Shape map{3, 7, 29, 31};
  static const std::vector<Case> all = {
      {"", MaxPool{.window = 3, .stride = 2, .pad = 1}, {map}},
      {"", AveragePool{.window = 3, .stride = 2, .pad = 1}, {map}},
      {"", GlobalAveragePool{}, {map}},
      {"", BatchNorm{}, {map}},
      {"", BatchNorm{}, {map}, {{Add{}}, {Relu{}}}},
      {"", Lrn{}, {map}},
      {"", Lrn{.size = 3, .beta = 0.6}, {map}},
      {"", Relu{}, {map}},
      {"", Dropout{.seed = 5}, {map}},
      {"", Softmax{}, {map}},
      {"", Softmax{}, {{7, 333, 1, 1}}},
      {"", Add{}, {map, map, map}},
      {"", Concat{}, {map, map}},
      {"", Slice{.first = 2, .channels = 4}, {map}},
  };
  return all;
}

/// As make_feed, which keeps a chain's numbers clear of kinks: of so many there is no such draw, nor any need.
Feed feed_of(const Case& c) {
  Case head = c;
  head.tail.clear();
  Feed feed = make_feed(head, 1);
  if (!c.tail.empty()) feed.x.push_back(normal(c.x[0], 2));  // of the Add behind it
  return feed;
}

}  // namespace

TEST_CASE("every op but convolution and fully connected gives the same bits for any number of threads") {
  const auto one = make_backend("eigen", {.threads = 1});
  for (const int threads : {2, 3, 5}) {
    const auto several = make_backend("eigen", {.threads = threads});
    for (Case c : cases())
      for (const Mode mode : {Mode::training, Mode::inference})
        for (const DType dtype : {DType::f32, DType::f64}) {
          c.mode = mode;
          INFO(to_string(c) << ' ' << to_string(dtype) << ", " << threads << " threads");
          const Spec spec = *make_spec(*one, c, {.dtype = dtype});
          const Feed feed = feed_of(c);
          const Result want = run_unit(*one, spec, {}, feed), got = run_unit(*several, spec, {}, feed);
          CHECK((got.y == want.y && got.dx == want.dx && got.dw == want.dw && got.state == want.state));
        }
  }
}
