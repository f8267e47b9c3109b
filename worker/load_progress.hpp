/// What people see of loading weights: a bar on the terminal, failures in the log.
#pragma once

#include <optional>

#include "common/result.hpp"
#include "worker/model/weights.hpp"

namespace leasehold {

/// Draws on stderr after one second of loading, if stderr is a terminal.
LoadProgress load_progress_on_terminal();

/// Logs why weights were not restored. Threads: the engine's.
class RestoreLog {
 public:
  /// Logs a failure once until another one follows or the weights are restored.
  void note(const Result<void>& restored);

 private:
  std::optional<Errc> failed_;  // the last attempt
};

}  // namespace leasehold
