#include "common/random.hpp"

#include <fmt/format.h>

#include <random>

namespace leasehold {

std::uint64_t random_at(std::uint64_t seed, std::uint64_t position) {
  std::uint64_t z = seed + (position + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

float random_unit_at(std::uint64_t seed, std::uint64_t position) {
  return static_cast<float>(random_at(seed, position) >> 40) * 0x1.0p-24f;
}

std::string mint_request_id() {
  std::random_device device;
  const auto high = static_cast<std::uint64_t>(device()) << 32;
  return fmt::format("req-{:012x}", (high | device()) & 0xFFFF'FFFF'FFFFull);
}

}  // namespace leasehold
