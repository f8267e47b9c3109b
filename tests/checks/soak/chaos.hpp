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
  KillBrokerAndWorker,
  /// Kills a tenant, and its successor soon after that has started to resume the text.
  KillResuming,
  /// Kills a worker, and its successor soon after that has started to adopt the memory.
  KillAdopting,
  StopTenant,
  StopWorker,
  StopBroker,
  RevokeLease,
  DrainLease,
  RevokeWeights,
  ReplaceWorker,  ///< Replaces a worker by another one, and kills it while texts move or later.
  RevokeText,     ///< Revokes a published text while requests read it.
};

inline constexpr int kScriptActionKindCount = static_cast<int>(ScriptActionKind::RevokeText) + 1;

/// "kill tenant" …
std::string_view name(ScriptActionKind kind);

bool is_kill(ScriptActionKind kind);

struct ScriptAction {
  ScriptActionKind kind{};
  std::uint64_t which = 0;         ///< Random; selects target `which % n` of n.
  std::uint64_t after_tokens = 0;  ///< Tokens of all tenants since the last action.
  std::uint64_t stop_actions = 1;  ///< For Stop actions: resume after this many actions.
  std::uint64_t second_kill = 1;   ///< Number of polls before the second process is killed.
};

ScriptAction next_action(SeededRandom& random);

}  // namespace leasehold::soak
