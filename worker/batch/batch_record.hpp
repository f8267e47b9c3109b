/// A file and a batch as the worker keeps them, and the states of a batch. Pure.
///
///   Validating ──► InProgress ──► Finalizing ──► Completed
///       │              ├── expired ──► Finalizing ──► Expired
///       ▼              ├── cancelled ─► Cancelling ─► Cancelled
///     Failed ◄─────────┘ the key is revoked or has expired
///
/// Times are seconds of Unix time; 0 means that it has not happened. The names of states and fields
/// are those of OpenAI's Batch API.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/control/messages/common.hpp"

namespace leasehold::batch {

/// The owner of files and batches: a tenant, from its admission to its removal. Another tenant that
/// is admitted under the same name later is another owner.
struct Owner {
  TenantId tenant;
  std::int64_t admitted_unix_ms = 0;
  auto operator<=>(const Owner&) const = default;
};

/// All files of a tenant can be read with any key of the tenant.
struct FileRecord {
  std::string id;  ///< Made by this worker: "file-" and 24 hex digits.
  Owner owner;
  std::string filename;  ///< The client's name for the file; only shown, never used as a path.
  std::string purpose;   ///< "batch" or "batch_output".
  std::uint64_t size_bytes = 0;
  std::int64_t created_at = 0;
  std::int64_t expires_at = 0;
};

enum class Status : std::uint8_t {
  Validating,
  InProgress,
  Finalizing,
  Completed,
  Failed,
  Expired,
  Cancelling,
  Cancelled,
};
inline constexpr int kStatusCount = static_cast<int>(Status::Cancelled) + 1;

std::string_view name(Status status);  ///< "in_progress"
/// True for a state that a batch does not leave.
constexpr bool is_final(Status status) {
  return status == Status::Completed || status == Status::Failed || status == Status::Expired ||
         status == Status::Cancelled;
}

/// Why a batch has failed: one entry for the batch, or one for each bad line.
struct LineError {
  std::string code;
  std::string message;
  std::string param;       ///< Empty: none.
  std::uint32_t line = 0;  ///< From 1; 0: the error concerns the whole batch.
};

struct LineCounts {
  std::uint32_t total = 0;
  std::uint32_t completed = 0;
  std::uint32_t failed = 0;
};

struct BatchRecord {
  std::string id;  ///< Made by this worker: "batch_" and 24 hex digits.
  Owner owner;
  ApiKeyId key;  ///< The key that created the batch; its lines run for this key.
  /// What the worker shows the broker in place of the key, which it does not keep
  /// (ipc/control/tokens/api_key.hpp).
  std::string batch_key;
  std::string endpoint;  ///< "/v1/chat/completions"
  std::string input_file;
  std::string output_file;  ///< Shown once the batch has ended and the file is not empty.
  std::string error_file;   ///< Shown under the same conditions.
  Status status = Status::Validating;
  std::map<Status, std::int64_t> reached_at;  ///< When the batch entered each state.
  std::int64_t expires_at = 0;
  bool has_expired = false;  ///< Finalizing leads to Expired.
  LineCounts counts;
  std::vector<LineError> errors;
  std::map<std::string, std::string> metadata;  ///< Given by the client, and returned unchanged.

  std::int64_t created_at() const;
};

/// Moves the batch to the state, and notes the time. Returns false, and changes nothing, if the
/// diagram above has no such arrow.
bool advance(BatchRecord& batch, Status to, std::int64_t now_unix_s);

/// What clients see of a batch that runs, which is `stored` on disk: its counts of this moment, and
/// its end only once that is on disk, after the results.
BatchRecord as_seen(const BatchRecord& stored, BatchRecord running);

}  // namespace leasehold::batch
