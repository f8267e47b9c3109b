/// What people see of a worker that starts and restores weights: a bar on the terminal, the log.
#pragma once

#include <cstdint>
#include <optional>

#include "common/available_memory.hpp"
#include "common/result.hpp"
#include "worker/model/weights.hpp"
#include "worker/options.hpp"

namespace leasehold {

/// Draws on stderr after one second of loading, if stderr is a terminal.
LoadProgress load_progress_on_terminal();

/// Logs that the worker serves, with its limits.
void log_ready(const WorkerOptions& options, const ModelConfig& model,
               std::uint64_t kv_block_size_bytes, std::uint32_t blocks_per_extent);

/// Warns of weights that the control group may have no memory for. Not an error: another worker may
/// have filled them, and its group pays for them then.
void warn_of_group_limit(const MachineMemory& memory, std::uint64_t weights_bytes);

/// Logs why weights were not restored. Threads: the engine's.
class RestoreLog {
 public:
  /// Logs a failure once until another one follows or the weights are restored.
  void note(const Result<void>& restored);

 private:
  std::optional<Errc> failed_;  // the last attempt
};

}  // namespace leasehold
