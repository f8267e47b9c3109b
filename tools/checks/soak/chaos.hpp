/// What is done to whom next, and after how many more tokens. Chance from a seed, nothing else.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/random.hpp"

namespace leasehold::soak {

enum class ScriptActionKind : std::uint8_t {
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

inline constexpr int kScriptActionKindCount = static_cast<int>(ScriptActionKind::RevokeWeights) + 1;

/// "kill tenant" …
std::string_view name(ScriptActionKind kind);

bool is_kill(ScriptActionKind kind);

struct ScriptAction {
  ScriptActionKind kind{};
  std::uint64_t which = 0;         ///< Any number; of n there are, the one at `which % n`.
  std::uint64_t after_tokens = 0;  ///< TenantEvent by all tenants together since the action before.
  std::uint64_t stop_actions = 1;  ///< With Stop: so many actions later it goes on.
};

class Chaos {
 public:
  explicit Chaos(std::uint64_t seed) : random_(seed) {}
  ScriptAction next();

 private:
  SeededRandom random_;
};

}  // namespace leasehold::soak
