/// Random numbers that depend only on a seed and a position, equal on every machine. Source of the
/// mixing step: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
#pragma once

#include <cstdint>
#include <string>

namespace leasehold {

/// The `position`-th number of the sequence named by `seed`. Pure.
std::uint64_t random_at(std::uint64_t seed, std::uint64_t position);

/// The same, as a float in [0, 1) with 24 random bits.
float random_unit_at(std::uint64_t seed, std::uint64_t position);

/// A sequence of such numbers. Satisfies UniformRandomBitGenerator.
class SeededRandom {
 public:
  using result_type = std::uint64_t;
  explicit SeededRandom(std::uint64_t seed) : seed_(seed) {}
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }
  result_type operator()() { return random_at(seed_, position_++); }

  /// In [0, bound); bound > 0. Bias below bound / 2^64.
  std::uint64_t below(std::uint64_t bound) { return (*this)() % bound; }

 private:
  std::uint64_t seed_;
  std::uint64_t position_ = 0;
};

/// 64 bits from the kernel's random source.
std::uint64_t random_bits();

/// A fresh request id, "req-" and 12 hex digits, from the kernel's random source.
std::string mint_request_id();

}  // namespace leasehold
