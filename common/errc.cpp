#include "common/errc.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace leasehold {
namespace {

struct Row {
  Errc code;
  std::string_view name;
  bool retryable;
  std::string_view hint;
};

// The hints that several codes share.
constexpr std::string_view kAcquireAgain =
    "an ended lease is never restored; its tenant acquires a new one";
constexpr std::string_view kCheckWorker = "check the worker's log and `brokerctl workers`";
constexpr std::string_view kStartBroker =
    "check that leasehold-broker runs; name its socket with --socket or LEASEHOLD_BROKER, for a "
    "worker with --broker";
constexpr std::string_view kRetrySoon = "try again in a moment";

using enum Errc;

constexpr std::array<Row, kErrcCount> kRows{{
    {BadRequest, "BadRequest", false, "correct the value named above, see --help"},
    {MalformedMessage, "MalformedMessage", false,
     "check that all programs are of the same version"},
    {MessageTooLarge, "MessageTooLarge", false, "send less"},
    {UnknownMethod, "UnknownMethod", false,
     "check that the socket is the right program's, and that all programs are of the same version"},
    {PermissionDenied, "PermissionDenied", false,
     "run as a permitted user: the broker's, the tenant's, or the file's owner"},
    {BadToken, "BadToken", false, kAcquireAgain},
    {UnknownTenant, "UnknownTenant", false,
     "admit it with `brokerctl tenants admit`; `brokerctl tenants` lists all"},
    {UnknownWorker, "UnknownWorker", false, "choose a ready worker from `brokerctl workers`"},
    {UnknownLease, "UnknownLease", false,
     "choose a lease from `brokerctl leases`, or memory from `brokerctl quarantine`"},
    {UnknownRequest, "UnknownRequest", false, "check the request id"},
    {QuotaConcurrent, "QuotaConcurrent", true,
     "wait for one of the tenant's requests to end, or raise --max-concurrent"},
    {QuotaBlocks, "QuotaBlocks", false,
     "ask for fewer blocks, or raise --max-blocks with `brokerctl tenants admit`"},
    {QueueFull, "QueueFull", true, kRetrySoon},
    {PoolExhausted, "PoolExhausted", true,
     "wait for free memory (`brokerctl status`), or revoke a lease"},
    {OutOfBlocks, "OutOfBlocks", true,
     "wait for free memory (`brokerctl status`); if the quota is the reason, raise --max-blocks"},
    {PromptTooLong, "PromptTooLong", false, "send less"},
    {Draining, "Draining", true,
     "try again in a moment; an operator ends a drain with `brokerctl undrain`"},
    {RebindRateLimited, "RebindRateLimited", true, kRetrySoon},
    {LeaseRevoked, "LeaseRevoked", false,
     "its tenant acquires a new lease; leasehold-tenant --rebind does so by itself"},
    {LeaseFenced, "LeaseFenced", false, kAcquireAgain},
    {EngineLeaseFenced, "EngineLeaseFenced", true, kRetrySoon},
    {MissingWeight, "MissingWeight", false, kCheckWorker},
    {StaleGeneration, "StaleGeneration", false, kAcquireAgain},
    {IllegalTransition, "IllegalTransition", false,
     "check the lease's state with `brokerctl leases`"},
    {RequestIdConflict, "RequestIdConflict", false, "use another --request-id"},
    {BrokerLost, "BrokerLost", true, kStartBroker},
    {EngineDecodeFailed, "EngineDecodeFailed", true, kCheckWorker},
    {NoModelLoaded, "NoModelLoaded", true, "choose a ready worker from `brokerctl workers`"},
    {WeightsLoading, "WeightsLoading", true, kRetrySoon},
    {StillWritable, "StillWritable", true, kRetrySoon},
    {NumericFault, "NumericFault", false, kCheckWorker},
    {FileNotFound, "FileNotFound", false,
     "check the path and the option or variable that names it"},
    {FileCorrupt, "FileCorrupt", false, "replace the file, or do what the error says"},
    {UnsupportedModel, "UnsupportedModel", false, "use another file"},
    {UntrustedSegment, "UntrustedSegment", false,
     "check which other users can write to the broker's files"},
    {SocketInUse, "SocketInUse", false,
     "stop the program that listens there, or choose another path"},
    {ConnectionRefused, "ConnectionRefused", true, kStartBroker},
    {ConnectionLost, "ConnectionLost", true,
     "check that the other process still runs; its log says why it ended"},
    {TimedOut, "TimedOut", true, "try again; if it persists, check the logs of broker and worker"},
    {DiskFull, "DiskFull", true, "free disk space and try again"},
    {OutOfMemory, "OutOfMemory", true, "free memory, or ask for less, and try again"},
    {SystemError, "SystemError", false, "check the logs; the message above is the system's"},
    {NoDevice, "NoDevice", false, "check `nvidia-smi`, or use --device cpu"},
    {DeviceUnsupported, "DeviceUnsupported", false,
     "install a newer driver, build for this card's architecture, or use --device cpu"},
    {DeviceFault, "DeviceFault", true,
     "check the worker's log and `nvidia-smi`, then restart the worker"},
    {StaleGraph, "StaleGraph", true, "try again; the step is captured again"},
    {QuotaTokens, "QuotaTokens", true,
     "wait as long as the error says, or raise --tokens-per-minute with `brokerctl tenants admit`"},
}};

constexpr bool rows_follow_the_enum() {
  for (int i = 0; i < kErrcCount; ++i) {
    if (static_cast<int>(kRows[static_cast<std::size_t>(i)].code) != i) return false;
  }
  return true;
}
static_assert(rows_follow_the_enum());

const Row& row(Errc code) {
  return kRows[static_cast<std::size_t>(code)];
}

}  // namespace

std::string_view name(Errc code) {
  return row(code).name;
}

std::string_view name(FailureScope scope) {
  switch (scope) {
    case FailureScope::Tenant:
      return "tenant";
    case FailureScope::Engine:
      return "engine";
    case FailureScope::Shared:
      return "shared";
  }
  return "tenant";
}

std::optional<FailureScope> failure_scope_from_name(std::string_view text) {
  for (const FailureScope scope :
       {FailureScope::Tenant, FailureScope::Engine, FailureScope::Shared}) {
    if (text == name(scope)) return scope;
  }
  return std::nullopt;
}

std::optional<Errc> errc_from_name(std::string_view text) {
  const auto found = std::ranges::find(kRows, text, &Row::name);
  return found == kRows.end() ? std::nullopt : std::optional(found->code);
}

bool is_retryable(Errc code) {
  return row(code).retryable;
}

std::string_view error_hint(Errc code) {
  return row(code).hint;
}

int exit_code(Errc code) {
  return 10 + static_cast<int>(code);
}

std::optional<Errc> errc_from_exit_code(int wanted) {
  const auto found =
      std::ranges::find(kRows, wanted, [](const Row& row) { return exit_code(row.code); });
  return found == kRows.end() ? std::nullopt : std::optional(found->code);
}

}  // namespace leasehold
