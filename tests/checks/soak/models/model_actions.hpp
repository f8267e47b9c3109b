/// Chooses the next disturbance of the soak with two models at random from a seed. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "common/random.hpp"

namespace leasehold::soak {

enum class ModelAction : std::uint8_t {
  KillWorker,
  RevokeLease,    ///< Of a tenant.
  RevokeWeights,  ///< Of a worker: it must restore them from its file.
  RestoreFile,    ///< Puts the first content back, if the file has another one.
  CopyFile,       ///< Renames a byte-identical copy over the file.
  ReplaceFile,    ///< Renames a file of equal shapes and other values over it.
  RewriteFile,    ///< Writes other values into the file itself.
  TruncateFile,
  RemoveFile,
  StopReader,  ///< Of one program's log, for some actions.
};

inline constexpr int kModelActionCount = static_cast<int>(ModelAction::StopReader) + 1;

/// "kill worker" …
std::string_view name(ModelAction action);

/// After these the weights of the worker are revoked, so that it reads its file again.
bool changes_file(ModelAction action);

struct ModelStep {
  ModelAction action{};
  std::uint64_t which = 0;         ///< Random; selects target `which % n` of n.
  std::uint64_t after_tokens = 0;  ///< Tokens of all tenants since the last step.
  std::uint64_t for_steps = 1;     ///< A stopped reader goes on after this many steps.
};

ModelStep next_model_step(SeededRandom& random);

}  // namespace leasehold::soak
