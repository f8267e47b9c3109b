/// Random scripts: which action comes next, its target and its time, all from a seed.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/random.hpp"

namespace leasehold::runner {

enum class ActionKind : std::uint8_t {
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
  RevokeWeights,  ///< The worker must restore them from its file.
  ReplaceWorker,  ///< Replaces a worker by another one, and kills it while texts move or later.
  SleepWorker,    ///< Puts a worker to sleep and wakes it at once.
  RevokeText,     ///< Revokes a published text while requests read it.
  RestoreFile,    ///< Restores the first content of a model file, if it has another one.
  CopyFile,       ///< Renames a byte-identical copy over the file.
  ReplaceFile,    ///< Renames a file of equal shapes and other values over it.
  RewriteFile,    ///< Writes other values into the file itself.
  TruncateFile,
  RemoveFile,
  StopReader,  ///< Stops the reader of one program's log for some actions.
  RevokeAdapter,
  UnloadAdapter,  ///< The worker closes the adapter once no request uses it.
  RemoveAdapter,
  AddAdapter,  ///< Registers a removed adapter again, as another version of the same content.
};

inline constexpr std::size_t kActionKinds = static_cast<std::size_t>(ActionKind::AddAdapter) + 1;
using ActionCounts = std::array<std::uint64_t, kActionKinds>;

/// "kill tenant" …
std::string_view name(ActionKind kind);

bool is_kill(ActionKind kind);
/// The number of actions that killed a process.
std::uint64_t kills(const ActionCounts& actions);

struct ActionShare {
  ActionKind kind{};
  std::uint64_t weight = 0;
};

/// A kind of random script.
struct Script {
  std::span<const ActionShare> shares;
  std::uint64_t max_tokens_between = 0;
  std::uint64_t max_stop_actions = 1;
  std::uint64_t max_polls_to_second_kill = 0;  ///< 0: no action kills a second process.
};

using NamedCounts = std::vector<std::pair<std::string, std::uint64_t>>;
/// The count of each action of the script, by name.
NamedCounts named_counts(const Script& script, const ActionCounts& actions);

struct ScriptAction {
  ActionKind kind{};
  std::uint64_t which = 0;         ///< Random; selects target `which % n` of n.
  std::uint64_t after_tokens = 0;  ///< Tokens of all tenants since the last action.
  std::uint64_t stop_actions = 1;  ///< For Stop actions: resume after this many actions.
  std::uint64_t second_kill = 1;   ///< Number of polls before the second process is killed.
};

/// Pure.
ScriptAction next_action(const Script& script, SeededRandom& random);

}  // namespace leasehold::runner
