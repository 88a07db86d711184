// The order of an epoch's samples.

#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "lamina/batches.h"
#include "lamina/error.h"
#include "lamina/random.h"

namespace lamina {

std::vector<std::uint32_t> shuffled(std::int64_t count, std::uint64_t seed, std::uint64_t epoch) {
  if (count < 0 || count > std::numeric_limits<std::uint32_t>::max())
    throw UsageError("shuffled: " + std::to_string(count) + " samples; give 0 to 2^32 - 1");
  std::vector<std::uint32_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0U);
  static constexpr std::uint64_t stream = hash("shuffle");
  for (std::uint64_t left = order.size(); left > 1; --left) {
    // A uniform position below `left` from 64 random bits: floor(bits left / 2^64), uniform to a part in 2^32.
    const auto words = philox(seed ^ stream, left, epoch);
    const std::uint64_t place = (words[0] * left + (words[1] * left >> 32)) >> 32;
    std::swap(order[left - 1], order[place]);
  }
  return order;
}

}  // namespace lamina
