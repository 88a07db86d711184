// Normal and uniform numbers from words of Philox. Plain loops over short blocks, so that the compiler vectorises them;
// the logarithm, sine and cosine are polynomials for the same reason, and give the same bits with any mathematics
// library.

#include "lamina/random.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace lamina {
namespace {

constexpr int block_counters = 64;  // per turn of the outer loop: 4 words each
constexpr int block_words = 4 * block_counters;
constexpr double word_step = 1.0 / 4294967296.0;  // 2^-32

/// Words 4 i to 4 i + 3 are those of counter (first + i, 0).
void draw(std::uint64_t key, std::uint64_t first, std::uint32_t* words) {
  for (int i = 0; i < block_counters; ++i) {
    const std::array<std::uint32_t, 4> four = philox(key, first + static_cast<std::uint64_t>(i), 0);
    std::copy(four.begin(), four.end(), words + 4 * i);
  }
}

}  // namespace

void fill_normal(std::span<double> out, std::uint64_t key, std::uint64_t first) {
  std::uint32_t words[block_words];
  double normal[block_words];
  // Blocks begin with a whole counter: the first one drops what lies ahead of `first`.
  std::size_t lead = first % 4;
  std::uint64_t counter = first / 4;
  for (std::size_t at = 0; at < out.size(); counter += block_counters) {
    draw(key, counter, words);
    for (int i = 0; i < block_words; i += 2) {
      const double radius = std::sqrt(-2 * std::log((words[i] + 0.5) * word_step));
      const double angle = 2 * std::numbers::pi * (words[i + 1] * word_step);
      normal[i] = radius * std::cos(angle);
      normal[i + 1] = radius * std::sin(angle);
    }
    const std::size_t count = std::min(out.size() - at, static_cast<std::size_t>(block_words) - lead);
    std::copy_n(normal + lead, count, out.begin() + static_cast<std::ptrdiff_t>(at));
    at += count;
    lead = 0;
  }
}

void fill_uniform(std::span<double> out, std::uint64_t key) {
  std::uint32_t words[block_words];
  for (std::size_t at = 0; at < out.size(); at += block_words / 2) {
    draw(key, at / 2, words);
    const std::size_t count = std::min(out.size() - at, static_cast<std::size_t>(block_words / 2));
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t bits = (std::uint64_t{words[2 * i]} << 21) ^ (words[2 * i + 1] >> 11);
      out[at + i] = static_cast<double>(bits) * (word_step / 2097152.0);
    }
  }
}

}  // namespace lamina
