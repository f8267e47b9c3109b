#include "tests/checks/soak/chaos.hpp"

#include <array>
#include <numeric>

namespace leasehold::soak {
namespace {

struct Share {
  std::string_view name;
  std::uint64_t weight;
};

// In the order of the enum. A killed worker costs one start; a killed broker disturbs every tenant.
constexpr std::array<Share, kScriptActionKindCount> kShares{{{"kill tenant", 40},
                                                             {"kill worker", 10},
                                                             {"kill broker", 3},
                                                             {"kill broker and worker", 3},
                                                             {"kill resuming tenant", 6},
                                                             {"kill adopting worker", 3},
                                                             {"stop tenant", 8},
                                                             {"stop worker", 5},
                                                             {"stop broker", 3},
                                                             {"revoke lease", 14},
                                                             {"drain lease", 6},
                                                             {"revoke weights", 6},
                                                             {"replace worker", 5},
                                                             {"revoke text", 8}}};

constexpr std::uint64_t kMaxTokensBetween = 40;
constexpr std::uint64_t kMaxStopActions = 4;
constexpr std::uint64_t kMaxPollsToSecondKill = 40;

}  // namespace

std::string_view name(ScriptActionKind kind) {
  return kShares[static_cast<std::size_t>(kind)].name;
}

bool is_kill(ScriptActionKind kind) {
  return kind <= ScriptActionKind::KillAdopting;
}

ScriptAction next_action(SeededRandom& random) {
  constexpr std::uint64_t kAll =
      std::accumulate(kShares.begin(), kShares.end(), std::uint64_t{0},
                      [](std::uint64_t sum, const Share& share) { return sum + share.weight; });
  std::uint64_t drawn = random.below(kAll);
  std::size_t kind = 0;
  while (drawn >= kShares[kind].weight) drawn -= kShares[kind++].weight;
  return {.kind = static_cast<ScriptActionKind>(kind),
          .which = random(),
          .after_tokens = random.below(kMaxTokensBetween + 1),
          .stop_actions = 1 + random.below(kMaxStopActions),
          .second_kill = 1 + random.below(kMaxPollsToSecondKill)};
}

}  // namespace leasehold::soak
