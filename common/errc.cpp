#include "common/errc.hpp"

#include <algorithm>
#include <array>

#include "common/errc_rows.hpp"

namespace leasehold {
namespace {

struct Row {
  Errc code;
  std::string_view name;
  bool retryable;
  FailureScope scope;
  std::string_view meaning;
  std::string_view hint;
};

// The hints that several codes share.
constexpr std::string_view kAcquireAgain =
    "an ended lease is never restored; its tenant acquires a new one";
constexpr std::string_view kCheckWorker = "check the worker's log and `brokerctl workers`";
constexpr std::string_view kRetrySoon = "try again in a moment";

using enum Errc;
using enum FailureScope;

constexpr std::array<Row, kErrcCount> kRows{{
    {BadRequest, "BadRequest", false, Tenant, "The request, option or file has a wrong value",
     "correct that value; --help lists the options"},
    {MalformedMessage, "MalformedMessage", false, Tenant,
     "A message has a wrong field, type or form",
     "check that all programs are of the same version"},
    {MessageTooLarge, "MessageTooLarge", false, Tenant,
     "A message, text or file is larger than its limit", "send less"},
    {UnknownMethod, "UnknownMethod", false, Tenant,
     "The peer does not have the method that was called",
     "check that the socket is the right program's, and that all programs are of the same version"},
    {PermissionDenied, "PermissionDenied", false, Tenant,
     "The user may not do this, or a file has an owner or mode that is not safe",
     "run as a permitted user: the broker's, the tenant's, or the file's owner"},
    {BadToken, "BadToken", false, Tenant,
     "The lease token is not one that the broker made for this worker", kAcquireAgain},
    {UnknownTenant, "UnknownTenant", false, Tenant,
     "The broker does not know the tenant, or has removed it",
     "admit it with `brokerctl tenants admit`; `brokerctl tenants` lists all"},
    {UnknownWorker, "UnknownWorker", false, Tenant,
     "The broker has no worker of this name that can serve",
     "choose a ready worker from `brokerctl workers`"},
    {UnknownLease, "UnknownLease", false, Tenant, "The lease or memory was never granted",
     "choose a lease from `brokerctl leases`, or memory from `brokerctl quarantine`"},
    {UnknownRequest, "UnknownRequest", false, Tenant, "The worker has no request with this id",
     "check the request id"},
    {QuotaConcurrent, "QuotaConcurrent", true, Tenant,
     "The tenant already runs as many requests as it may",
     "wait for one of the tenant's requests to end, or raise --max-concurrent"},
    {QuotaBlocks, "QuotaBlocks", false, Tenant,
     "The tenant, or the published texts of a worker, would hold more KV blocks than allowed",
     "ask for fewer blocks, or raise --max-blocks with `brokerctl tenants admit`"},
    {QueueFull, "QueueFull", true, Tenant, "A bounded queue or the share of its owner is full",
     kRetrySoon},
    {PoolExhausted, "PoolExhausted", true, Tenant,
     "The broker has no free memory, slot or descriptor for this owner",
     "wait for free memory (`brokerctl status`), or revoke a lease"},
    {OutOfBlocks, "OutOfBlocks", true, Tenant,
     "A running request needs another KV block, and there is none",
     "wait for free memory (`brokerctl status`); if the quota is the reason, raise --max-blocks"},
    {PromptTooLong, "PromptTooLong", false, Tenant, "Prompt and answer do not fit into the context",
     "send less"},
    {Draining, "Draining", true, Tenant, "The broker, worker or tenant admits nothing new",
     "try again in a moment; an operator ends a drain with `brokerctl undrain`"},
    {RebindRateLimited, "RebindRateLimited", true, Tenant,
     "The tenant replaces revoked leases faster than it may", kRetrySoon},
    {LeaseRevoked, "LeaseRevoked", false, Tenant, "The broker or an operator ended the lease",
     "its tenant acquires a new lease; leasehold-tenant --rebind does so by itself"},
    {LeaseFenced, "LeaseFenced", false, Tenant,
     "The lease has ended, and nothing can touch its memory any more", kAcquireAgain},
    {EngineLeaseFenced, "EngineLeaseFenced", true, Engine,
     "The lease of the model weights was fenced; the worker loads them again", kRetrySoon},
    {MissingWeight, "MissingWeight", false, Engine,
     "The model file lacks a tensor, or a revoked part of the weights cannot be restored",
     "convert or copy the model again; the error, or the worker's log, names the part"},
    {StaleGeneration, "StaleGeneration", false, Tenant,
     "The lease has ended, and its slot is in use by another one", kAcquireAgain},
    {IllegalTransition, "IllegalTransition", false, Tenant,
     "The lease cannot change from its state to the requested one",
     "check the lease's state with `brokerctl leases`"},
    {RequestIdConflict, "RequestIdConflict", false, Tenant,
     "The request id was used for another call", "use another --request-id"},
    {BrokerLost, "BrokerLost", true, Engine,
     "The connection to the broker is lost, and no new lease can be had",
     "try again in a moment; if it persists, check that leasehold-broker runs"},
    {EngineDecodeFailed, "EngineDecodeFailed", true, Engine, "A step of the engine failed",
     kCheckWorker},
    {NoModelLoaded, "NoModelLoaded", true, Engine, "The worker has not loaded its model yet",
     "choose a ready worker from `brokerctl workers`"},
    {WeightsLoading, "WeightsLoading", true, Engine,
     "The worker loads or restores weights, and its queue is full", kRetrySoon},
    {StillWritable, "StillWritable", true, Tenant,
     "The memory may still be written to, so it cannot be given to another owner yet",
     "end the worker that still maps it, then try again"},
    {NumericFault, "NumericFault", false, Tenant, "The model computed a value that is not finite",
     kCheckWorker},
    {FileNotFound, "FileNotFound", false, Tenant, "The file or socket does not exist",
     "check the path and the option or variable that names it"},
    {FileCorrupt, "FileCorrupt", false, Tenant,
     "The content of a file contradicts itself or its checksum",
     "replace the file, or do what the error says"},
    {UnsupportedModel, "UnsupportedModel", false, Tenant,
     "The model file has an architecture, type or size that is not supported", "use another file"},
    {UntrustedSegment, "UntrustedSegment", false, Tenant,
     "Shared memory was changed by a process that may not do so",
     "check which other users can write to the broker's files"},
    {SocketInUse, "SocketInUse", false, Tenant, "Another process uses the socket or the directory",
     "stop the program that uses it, or choose another path"},
    {ConnectionRefused, "ConnectionRefused", true, Tenant,
     "The socket exists, but no process accepts on it",
     "start the program that listens there (leasehold-broker or the worker)"},
    {ConnectionLost, "ConnectionLost", true, Tenant,
     "The other process closed the connection or ended",
     "check that the other process still runs; its log says why it ended"},
    {TimedOut, "TimedOut", true, Tenant, "The other process did not answer in time",
     "try again; if it persists, check the logs of broker and worker"},
    {DiskFull, "DiskFull", true, Tenant, "A file or stdout did not accept all output",
     "free disk space and try again"},
    {OutOfMemory, "OutOfMemory", true, Tenant, "The machine or device has not enough free memory",
     "free memory, or ask for less, and try again"},
    {SystemError, "SystemError", false, Tenant, "A system call failed",
     "this is the system's message; the logs may say more"},
    {NoDevice, "NoDevice", false, Tenant, "No such device can be used",
     "check `nvidia-smi`, or use --device cpu"},
    {DeviceUnsupported, "DeviceUnsupported", false, Tenant,
     "The device, its driver or its architecture is not supported",
     "install a newer driver, build for this card's architecture, or use --device cpu"},
    {DeviceFault, "DeviceFault", true, Engine,
     "The device reported an error, and its context is lost",
     "check the worker's log and `nvidia-smi`, then restart the worker"},
    {StaleGraph, "StaleGraph", true, Tenant,
     "A captured step is older than the leases it would use",
     "try again; the step is captured again"},
    {QuotaTokens, "QuotaTokens", true, Tenant,
     "The tenant or the API key has used its tokens of this minute or day",
     "wait as long as the error says, or raise the limit that it names"},
    {ProtocolMismatch, "ProtocolMismatch", false, Tenant,
     "The broker and the worker speak versions of their protocol that do not fit together",
     "upgrade and restart the side that the error names; the broker comes before its workers"},
    {QuotaRequests, "QuotaRequests", true, Tenant,
     "The tenant or the API key has started its requests of this minute",
     "wait as long as the error says, or raise the limit that it names"},
    {RequestCancelled, "RequestCancelled", false, Tenant,
     "An operator, or a client of the tenant, ended the request",
     "submit it again only if it is still wanted; `brokerctl actions` shows the operator"},
    {CellLost, "CellLost", true, Tenant,
     "This host has lost its cell, so it may not run the cell's tenants",
     "try again in a moment, or on another host; `brokerctl status` shows the ceiling"},
    {UnknownAdapter, "UnknownAdapter", false, Tenant,
     "No adapter of this name is registered for the tenant, or it was removed",
     "choose one of `brokerctl adapters`, or register it with `brokerctl adapters add`"},
    {QuotaAdapters, "QuotaAdapters", true, Tenant,
     "The tenant's adapters, or the shared ones, would be more or larger than allowed",
     "unload an adapter that is not in use, or raise the limit that the error names"},
}};

static_assert(rows_follow_errc(kRows));
static_assert(std::ranges::none_of(kRows, [](const Row& row) {
  return row.name.empty() || row.meaning.empty() || row.hint.empty();
}));

const Row& row(Errc code) {
  return kRows[static_cast<std::size_t>(code)];
}

}  // namespace

std::string_view name(Errc code) {
  return row(code).name;
}

std::string_view name(FailureScope scope) {
  constexpr std::string_view kNames[] = {"tenant", "engine", "shared", "adapter"};
  return kNames[static_cast<unsigned>(scope)];
}

std::optional<FailureScope> failure_scope_from_name(std::string_view text) {
  for (const FailureScope scope :
       {FailureScope::Tenant, FailureScope::Engine, FailureScope::Shared, FailureScope::Adapter}) {
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

FailureScope failure_scope(Errc code) {
  return row(code).scope;
}

std::string_view error_meaning(Errc code) {
  return row(code).meaning;
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
