/// Chooses the next action, its target and its time at random from a seed. Pure.
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
  std::uint64_t which = 0;         ///< Random; selects target `which % n` of n.
  std::uint64_t after_tokens = 0;  ///< Tokens of all tenants since the last action.
  std::uint64_t stop_actions = 1;  ///< For Stop: resume after this many actions.
};

ScriptAction next_action(SeededRandom& random);

}  // namespace leasehold::soak
