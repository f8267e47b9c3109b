/// The order in which sequences take the blocks of a local model.
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "common/random.hpp"

namespace leasehold {

/// Numbers 0 … n - 1, shuffled unless the seed is 0.
inline std::vector<std::uint32_t> block_order(std::uint32_t n, std::uint64_t seed) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  SeededRandom random(seed);
  for (std::size_t i = n; seed != 0 && i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

}  // namespace leasehold
