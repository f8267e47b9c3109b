#include "tests/checks/runner/script.hpp"

#include <numeric>

namespace leasehold::runner {
namespace {

// In the order of the enum.
constexpr std::array<std::string_view, kActionKinds> kNames{"kill tenant",
                                                            "kill worker",
                                                            "kill broker",
                                                            "kill broker and worker",
                                                            "kill resuming tenant",
                                                            "kill adopting worker",
                                                            "stop tenant",
                                                            "stop worker",
                                                            "stop broker",
                                                            "revoke lease",
                                                            "drain lease",
                                                            "revoke weights",
                                                            "replace worker",
                                                            "sleep worker",
                                                            "revoke text",
                                                            "restore file",
                                                            "copy file",
                                                            "replace file",
                                                            "rewrite file",
                                                            "truncate file",
                                                            "remove file",
                                                            "stop reader",
                                                            "revoke adapter",
                                                            "unload adapter",
                                                            "remove adapter",
                                                            "add adapter"};

}  // namespace

std::string_view name(ActionKind kind) {
  return kNames[static_cast<std::size_t>(kind)];
}

bool is_kill(ActionKind kind) {
  return kind <= ActionKind::KillAdopting;
}

std::uint64_t kills(const ActionCounts& actions) {
  constexpr auto kLastKill = static_cast<std::ptrdiff_t>(ActionKind::KillAdopting);
  return std::accumulate(actions.begin(), actions.begin() + kLastKill + 1, std::uint64_t{0});
}

NamedCounts named_counts(const Script& script, const ActionCounts& actions) {
  NamedCounts counts;
  for (const ActionShare& share : script.shares)
    counts.emplace_back(name(share.kind), actions[static_cast<std::size_t>(share.kind)]);
  return counts;
}

ScriptAction next_action(const Script& script, SeededRandom& random) {
  const std::uint64_t all = std::accumulate(
      script.shares.begin(), script.shares.end(), std::uint64_t{0},
      [](std::uint64_t sum, const ActionShare& share) { return sum + share.weight; });
  std::uint64_t drawn = random.below(all);
  auto share = script.shares.begin();
  while (drawn >= share->weight) drawn -= share++->weight;
  ScriptAction action{.kind = share->kind,
                      .which = random(),
                      .after_tokens = random.below(script.max_tokens_between + 1),
                      .stop_actions = 1 + random.below(script.max_stop_actions)};
  if (script.max_polls_to_second_kill > 0)
    action.second_kill = 1 + random.below(script.max_polls_to_second_kill);
  return action;
}

}  // namespace leasehold::runner
