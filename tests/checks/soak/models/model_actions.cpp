#include "tests/checks/soak/models/model_actions.hpp"

#include <array>
#include <numeric>

namespace leasehold::soak {
namespace {

struct Share {
  std::string_view name;
  std::uint64_t weight;
};

// In the order of the enum. Files are restored as often as they are damaged, so that most of the
// time each model has a worker that can serve it.
constexpr std::array<Share, kModelActionCount> kShares{{{"kill worker", 6},
                                                        {"revoke lease", 14},
                                                        {"revoke weights", 10},
                                                        {"restore file", 24},
                                                        {"copy file", 8},
                                                        {"replace file", 7},
                                                        {"rewrite file", 5},
                                                        {"truncate file", 7},
                                                        {"remove file", 5},
                                                        {"stop reader", 8}}};

constexpr std::uint64_t kMaxTokensBetween = 60;
constexpr std::uint64_t kMaxStepsWithoutReader = 12;

}  // namespace

std::string_view name(ModelAction action) {
  return kShares[static_cast<std::size_t>(action)].name;
}

bool changes_file(ModelAction action) {
  return action >= ModelAction::RestoreFile && action <= ModelAction::RemoveFile;
}

ModelStep next_model_step(SeededRandom& random) {
  constexpr std::uint64_t kAll =
      std::accumulate(kShares.begin(), kShares.end(), std::uint64_t{0},
                      [](std::uint64_t sum, const Share& share) { return sum + share.weight; });
  std::uint64_t drawn = random.below(kAll);
  std::size_t action = 0;
  while (drawn >= kShares[action].weight) drawn -= kShares[action++].weight;
  return {.action = static_cast<ModelAction>(action),
          .which = random(),
          .after_tokens = random.below(kMaxTokensBetween + 1),
          .for_steps = 1 + random.below(kMaxStepsWithoutReader)};
}

}  // namespace leasehold::soak
