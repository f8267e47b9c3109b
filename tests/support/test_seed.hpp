/// The seed of a test's random numbers.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace leasehold::testing {

/// SEED from the environment, or `otherwise`. Print it with INFO.
inline std::uint64_t test_seed(std::uint64_t otherwise = 1) {
  const char* text = std::getenv("SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace leasehold::testing
