// Half precision in eigen: conversions of every number, by every instruction set.

#include <bit>

#include "lib/core/numbers/float16.h"
#include "tests/eigen/sets.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

template <class T>
Tensor row(std::vector<T>& numbers, DType dtype) {
  const auto count = static_cast<int>(numbers.size());
  return {numbers.data(), {1, count, 1, 1}, dtype, Layout::nchw, count};
}

/// Writes the numbers of x in another type, by a unit that moves them.
void cast(Backend& with, const Tensor& y, const Tensor& x) {
  const Case c{"", Slice{.first = 0, .count = x.shape.c}, {x.shape}, {}, Mode::inference};
  Spec spec = *make_spec(with, c, {});
  spec.x[0].dtype = x.dtype;
  spec.y.dtype = y.dtype;
  const Lowered lowered = with.lower(spec, {});
  std::vector<std::byte> workspace(lowered.steps[0].kernel->workspace_bytes() + 256);
  Args args;
  args.x = {x};
  args.dx.resize(1);
  args.y = y;
  args.workspace = workspace.data() + (256 - reinterpret_cast<std::uintptr_t>(workspace.data()) % 256) % 256;
  lowered.steps[0].kernel->run(args);
}

}  // namespace

TEST_CASE("halves are widened exactly and numbers of f32 are rounded once, with every instruction set") {
  std::vector<std::uint16_t> words(65536 + 5);
  std::vector<float> floats(300003);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint16_t>(i);
  for (std::size_t i = 0; i < floats.size(); ++i) {
    auto bits = static_cast<std::uint32_t>(i * 2654435761U);
    if (i % 3 == 0) bits = (bits & 0xffffe000U) | 0x1000U;      // ties of f16
    if (i % 3 == 1) bits = (bits & 0xffff0000U) | 0x8000U;      // ties of bf16
    if (i % 2 == 0) bits = (bits & 0x87ffffffU) | 0x30000000U;  // where f16 has numbers, subnormal ones too
    floats[i] = std::bit_cast<float>(bits);
  }
  for (const auto* set : sets_here()) {
    const auto made = make_backend("eigen", {.threads = 2, .instruction_set = set->name});
    for (const DType dtype : {DType::f16, DType::bf16}) {
      INFO(set->name << ", " << to_string(dtype));
      const auto same = [](double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b; };
      std::vector<float> wide(words.size());
      cast(*made, row(wide, DType::f32), row(words, dtype));
      int different = 0;
      for (std::size_t i = 0; i < words.size(); ++i) different += !same(wide[i], widen(dtype, words[i]));
      CHECK(different == 0);
      std::vector<std::uint16_t> half(floats.size());
      cast(*made, row(half, dtype), row(floats, DType::f32));
      for (std::size_t i = 0; i < floats.size(); ++i)
        different += std::isnan(floats[i]) ? !std::isnan(widen(dtype, half[i])) : half[i] != narrow(dtype, floats[i]);
      CHECK(different == 0);
    }
  }
}

TEST_CASE("Winograd's algorithms on bf16 have the bits of f32, rounded once, with every instruction set") {
  // Rows with and without whole squares of channels by columns, of 4, 8 and 16 lanes.
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
