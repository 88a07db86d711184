// The order in which the blocks of a grid and the threads of a block take turns, as the environment sets it.

#include "turns.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string>

namespace lamina::cuda_host::host {

Turns turns_of(const char* text) {
  const std::string name = text == nullptr ? "" : text;
  if (name.empty() || name == "ascending") return {};
  if (name == "descending") return {Order::descending, 0};
  if (name == "shuffled") return {Order::shuffled, 0};
  const std::string prefix = "shuffled:";
  const std::string digits = name.rfind(prefix, 0) == 0 ? name.substr(prefix.size()) : "";
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos)
    throw LaunchError("LAMINA_THREAD_ORDER is \"" + name +
                      "\"; it takes ascending, descending, shuffled or shuffled:<seed>");
  return {Order::shuffled, std::strtoull(digits.c_str(), nullptr, 10)};
}

std::vector<std::size_t> in_turns(Order order, std::size_t first, std::size_t count, std::mt19937_64& random) {
  std::vector<std::size_t> result(count);
  std::iota(result.begin(), result.end(), first);
  if (order == Order::descending) std::reverse(result.begin(), result.end());
  if (order == Order::shuffled) std::shuffle(result.begin(), result.end(), random);
  return result;
}

}  // namespace lamina::cuda_host::host
