/// Shows the progress of loading and restoring weights: a bar on the terminal, and log entries.
#pragma once

#include <cstdint>
#include <optional>

#include "common/machine/available_memory.hpp"
#include "common/result.hpp"
#include "worker/model/weights.hpp"
#include "worker/options.hpp"

namespace leasehold {

/// Returns a function that draws a bar on stderr after one second of loading, if stderr is a
/// terminal.
LoadProgress load_progress_on_terminal();

/// Logs that the worker is ready, with its limits.
void log_ready(const WorkerOptions& options, const ModelConfig& model,
               std::uint64_t kv_block_size_bytes, std::uint32_t blocks_per_extent);

/// Warns when the weights exceed the memory that the control group has left. This is not an error,
/// because another worker may have filled the weights, and its group is then charged for them.
void warn_of_group_limit(const MachineMemory& memory, std::uint64_t weights_bytes);

/// Logs the reason when weights are not restored. Threads: the engine's.
class RestoreLog {
 public:
  /// Logs a failure unless the last attempt failed with the same error code.
  void note(const Result<void>& restored);

 private:
  std::optional<Errc> failed_;  // error of the last attempt
};

}  // namespace leasehold
