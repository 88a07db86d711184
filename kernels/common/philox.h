#pragma once
// Philox4x32-10 (Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3, 2011): random words from a counter.

#include <cstdint>

#include "kernels/types/stream.h"

namespace lamina::LAMINA_CUDA_SPACE {

struct PhiloxWords {
  std::uint32_t word[4];
};

/// The words of a 128-bit counter, low half first, under a 64-bit key.
LAMINA_HOST_DEVICE inline PhiloxWords philox_words(std::uint64_t key, std::uint64_t low, std::uint64_t high) {
  std::uint32_t even_key = static_cast<std::uint32_t>(key), odd_key = static_cast<std::uint32_t>(key >> 32);
  PhiloxWords x = {{static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32),
                    static_cast<std::uint32_t>(high), static_cast<std::uint32_t>(high >> 32)}};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t even = std::uint64_t{0xD2511F53U} * x.word[0], odd = std::uint64_t{0xCD9E8D57U} * x.word[2];
    x = {{static_cast<std::uint32_t>(odd >> 32) ^ x.word[1] ^ even_key, static_cast<std::uint32_t>(odd),
          static_cast<std::uint32_t>(even >> 32) ^ x.word[3] ^ odd_key, static_cast<std::uint32_t>(even)}};
    even_key += 0x9E3779B9U;
    odd_key += 0xBB67AE85U;
  }
  return x;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
