// Half precision in eigen: conversions of every number, and Winograd's algorithms on bf16, on every instruction set.

#include "lib/core/numbers/float16.h"
#include "tests/eigen/sets.h"
#include "tests/support/cases/suite.h"

using namespace lamina::test;

TEST_CASE("halves are converted to f32 exactly, and f32 to halves with one rounding, on every instruction set") {
  for (const auto* set : sets_here()) {
    const auto made = make_backend("eigen", {.threads = 2, .instruction_set = set->name});
    for (const DType dtype : {DType::f16, DType::bf16})
      for (const int images : {1, 3}) {
        INFO(set->name);
        check_conversions(*made, dtype, images);
      }
  }
}

TEST_CASE("Winograd's algorithms on bf16 have the results of f32, rounded once, on every instruction set") {
  // Rows of pixels that can and cannot be cut into squares of channels by columns, for vectors of 4, 8 and 16 lanes.
  const std::vector<Case> cases = {
      {"", Conv{.channels = 37, .kernel = 3, .pad = 1}, {{3, 21, 9, 35}}, {{Relu{}}}},
      {"", Conv{.channels = 32, .kernel = 3, .groups = 2}, {{2, 32, 7, 21}}},
      {"", Conv{.channels = 6, .kernel = 3, .pad = 1}, {{2, 16, 5, 6}}, {{Add{}, 0}, {Relu{}}}, Mode::inference},
      {"", Conv{.channels = 16, .kernel = 3, .pad = 1}, {{2, 16, 9, 17}}, {{BatchNorm{}}, {Relu{}}}, Mode::inference}};
  for (const auto* set : sets_here()) {
    const auto eigen = make_backend("eigen", {.threads = 2, .instruction_set = set->name});
    for (const Case& c : cases)
      for (const char* name : {"winograd_2x2", "winograd_4x4"})
        for (const bool adds : {false, true}) {
          if (adds && c.mode == Mode::inference) continue;
          INFO(to_string(c) << ", " << name << " by " << set->name << (adds ? ", adds" : ""));
          const Feed feed = make_feed(c, 5, Fill::normal, DType::bf16);
          const auto run = [&](DType dtype) {
            return run_unit(*eigen, *make_spec(*eigen, c, {.dtype = dtype, .adds = adds}),
                            {.algorithm = {name, name, name}}, feed);
          };
          const Result got = run(DType::bf16), want = run(DType::f32);
          const auto same = [](const Values& halves, const Values& floats) {
            int different = 0;
            for (std::size_t i = 0; i < floats.size(); ++i)
              different += halves.at(i) != widen(DType::bf16, narrow(DType::bf16, floats[i]));
            CHECK(different == 0);
          };
          same(got.y, want.y);
          for (std::size_t i = 0; i < want.dx.size(); ++i) same(got.dx[i], want.dx[i]);
          CHECK(got.dw == want.dw);
        }
  }
}
