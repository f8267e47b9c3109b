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
  KillResuming,  ///< A tenant, and soon after its start the one that asks for the text again.
  KillAdopting,  ///< A worker, and soon after its start the one that adopts its memory.
  StopTenant,
  StopWorker,
  StopBroker,
  RevokeLease,
  DrainLease,
  RevokeWeights,
  ReplaceWorker,  ///< By another one, and kills it while texts move or later.
  RevokeText,     ///< A published one, under all that read it.
};

inline constexpr int kScriptActionKindCount = static_cast<int>(ScriptActionKind::RevokeText) + 1;

/// "kill tenant" …
std::string_view name(ScriptActionKind kind);

bool is_kill(ScriptActionKind kind);

struct ScriptAction {
  ScriptActionKind kind{};
  std::uint64_t which = 0;         ///< Random; selects target `which % n` of n.
  std::uint64_t after_tokens = 0;  ///< Tokens of all tenants since the last action.
  std::uint64_t stop_actions = 1;  ///< For Stop: resume after this many actions.
  std::uint64_t second_kill = 1;   ///< Polls that the process of a later kill runs before it.
};

ScriptAction next_action(SeededRandom& random);

}  // namespace leasehold::soak
