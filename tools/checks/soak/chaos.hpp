/// What is done to whom next, and after how many more tokens. Chance from a seed, nothing else.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/random.hpp"

namespace leasehold::soak {

enum class DeedKind : std::uint8_t {
  KillTenant,
  KillWorker,
  KillBroker,
  StopTenant,
  StopWorker,
  StopBroker,
  RevokeLease,
  DrainLease,
  RevokeWeights,
};

inline constexpr int kDeedKindCount = static_cast<int>(DeedKind::RevokeWeights) + 1;

/// "kill tenant" …
std::string_view name(DeedKind kind);

bool is_kill(DeedKind kind);

struct Deed {
  DeedKind kind{};
  std::uint64_t which = 0;         ///< Any number; of n there are, the one at `which % n`.
  std::uint64_t after_tokens = 0;  ///< Told by all tenants together since the deed before.
  std::uint64_t stands_for = 1;    ///< With Stop: so many deeds later it goes on.
};

class Chaos {
 public:
  explicit Chaos(std::uint64_t seed) : random_(seed) {}
  Deed next();

 private:
  SeededRandom random_;
};

}  // namespace leasehold::soak
