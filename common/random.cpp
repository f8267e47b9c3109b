#include "common/random.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>

#include "common/expects.hpp"

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

std::uint64_t random_bits() {
  // std::random_device executes CPUID each time it is constructed, which a virtual machine traps.
  std::uint64_t bits = 0;
  ssize_t size = 0;
  do size = ::getrandom(&bits, sizeof bits, 0);
  while (size < 0 && errno == EINTR);
  ensures(size == ssize_t{sizeof bits}, "the kernel has random bytes");
  return bits;
}

std::string mint_request_id() {
  return fmt::format("req-{:012x}", random_bits() & 0xFFFF'FFFF'FFFFull);
}

}  // namespace leasehold
