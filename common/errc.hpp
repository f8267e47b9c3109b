/// The closed list of error codes. The same names appear everywhere: C++ `Errc`, JSON
/// `error.data.code`, messages; each has an exit code of the command-line tools.
///
/// C++20-clean: kernels may include it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace leasehold {

enum class Errc : std::uint8_t {
  // The request cannot be parsed or accepted.
  BadRequest,
  MalformedMessage,
  MessageTooLarge,
  UnknownMethod,
  // Identity and permission.
  PermissionDenied,
  BadToken,
  UnknownTenant,
  UnknownWorker,
  UnknownLease,
  UnknownRequest,
  // Limits. A later or smaller request can succeed.
  QuotaConcurrent,
  QuotaBlocks,
  QueueFull,
  PoolExhausted,
  OutOfBlocks,
  PromptTooLong,
  Draining,
  RebindRateLimited,
  // Lease state. Final for the lease that the error names; an engine lease is replaced by the
  // worker.
  LeaseRevoked,
  LeaseFenced,
  EngineLeaseFenced,
  MissingWeight,
  StaleGeneration,
  IllegalTransition,
  RequestIdConflict,
  BrokerLost,
  // The engine.
  EngineDecodeFailed,
  NoModelLoaded,
  WeightsLoading,
  StillWritable,
  NumericFault,
  // Files and the machine.
  FileNotFound,
  FileCorrupt,
  UnsupportedModel,
  UntrustedSegment,
  SocketInUse,
  ConnectionRefused,
  ConnectionLost,
  TimedOut,
  DiskFull,
  OutOfMemory,
  SystemError,
  // Devices.
  NoDevice,
  DeviceUnsupported,
  DeviceFault,
  StaleGraph,
  // Limits. They are placed here so that the exit codes of the errors above do not change.
  QuotaTokens,
  // Versions, placed here for the same reason.
  ProtocolMismatch,
  // Limits and the end of a request, placed here for the same reason.
  QuotaRequests,
  RequestCancelled,
  // Cells, placed here for the same reason.
  CellLost,
  // Adapters, placed here for the same reason.
  UnknownAdapter,
  QuotaAdapters,
};

inline constexpr int kErrcCount = static_cast<int>(Errc::QuotaAdapters) + 1;

/// The name as it appears on every wire: "LeaseFenced".
std::string_view name(Errc code);

/// The inverse of `name`; nothing for a word that is not in the list.
std::optional<Errc> errc_from_name(std::string_view text);

/// True when the same call may succeed later, unchanged.
bool is_retryable(Errc code);

/// What has happened, without a full stop.
std::string_view error_meaning(Errc code);

/// What a user can try, without a full stop; the same in every program.
std::string_view error_hint(Errc code);

/// Exit code of a command-line tool that ends with this error: 10 + position in the list.
/// 0 means success, 1 an unforeseen failure, 2 wrong usage.
int exit_code(Errc code);

/// The inverse of `exit_code`; nothing for an exit code without an error code.
std::optional<Errc> errc_from_exit_code(int exit_code);

/// True for the errors that mean that the caller's lease has ended.
constexpr bool is_lease_ended(Errc code) {
  return code == Errc::LeaseRevoked || code == Errc::LeaseFenced || code == Errc::StaleGeneration;
}

/// The tenants of a worker that a failure concerns.
enum class FailureScope : std::uint8_t {
  Tenant,   ///< The request, its lease or its tenant; the other tenants continue.
  Engine,   ///< Every tenant of the worker.
  Shared,   ///< The requests that read a published text; they may continue under their own leases.
  Adapter,  ///< The requests that use an adapter; they may continue under their own leases.
};

/// "tenant", "engine", "shared" or "adapter".
std::string_view name(FailureScope scope);

/// The inverse of `name`; nothing for another text.
std::optional<FailureScope> failure_scope_from_name(std::string_view text);

/// The scope that a code has unless the error says otherwise.
FailureScope failure_scope(Errc code);

}  // namespace leasehold
