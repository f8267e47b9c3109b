#include "tools/gateway/decide/error_outcome.hpp"

#include <algorithm>
#include <array>

namespace leasehold::gateway {
namespace {

struct Row {
  Errc code;
  ErrorOutcome starting;
  ErrorOutcome continuing;
  std::string_view reason;
};

using enum Errc;
using enum ErrorOutcome;

// Reasons that several codes share.
constexpr std::string_view kRequest = "the request is wrong, and every host would refuse it";
constexpr std::string_view kLease = "the lease ended, and another host grants a new one";
constexpr std::string_view kFull = "the host is full, and another one may have room";
constexpr std::string_view kBroken = "the host or its engine is broken; another one may not be";
constexpr std::string_view kFiles = "the host's own files or settings are wrong";
constexpr std::string_view kQuota =
    "the limit is the tenant's: a new request elsewhere would multiply it; a text that moved may "
    "wait or go to a host with room";

constexpr std::array<Row, kErrcCount> kRows{{
    {BadRequest, PassOn, PassOn, kRequest},
    {MalformedMessage, PassOn, PassOn, kRequest},
    {MessageTooLarge, PassOn, PassOn, kRequest},
    {UnknownMethod, PassOn, PassOn, kRequest},
    {PermissionDenied, PassOn, PassOn, "the tenant may not do this"},
    {BadToken, PassOn, PassOn, "the key is not valid, or was revoked while the text ran"},
    {UnknownTenant, PassOn, PassOn, "the tenant was not admitted, or was removed"},
    {UnknownWorker, Move, Move, kBroken},
    {UnknownLease, Move, Move, kLease},
    {UnknownRequest, PassOn, PassOn, "the text that the request names is not there"},
    {QuotaConcurrent, PassOn, Move, kQuota},
    {QuotaBlocks, PassOn, PassOn, "the text is larger than the tenant's limit of blocks"},
    {QueueFull, Move, Move, kFull},
    {PoolExhausted, Move, Move, kFull},
    {OutOfBlocks, Move, Move, kFull},
    {PromptTooLong, PassOn, PassOn, kRequest},
    {Draining, Move, Move, "the host ends its service, and another one has not"},
    {RebindRateLimited, PassOn, Move, kQuota},
    {LeaseRevoked, Move, Move, kLease},
    {LeaseFenced, Move, Move, kLease},
    {EngineLeaseFenced, Move, Move, kBroken},
    {MissingWeight, Move, Move, kBroken},
    {StaleGeneration, Move, Move, kLease},
    {IllegalTransition, Move, Move, kLease},
    {RequestIdConflict, PassOn, Move,
     "the id belongs to another request; of a text that moved, to its own earlier run"},
    {BrokerLost, Move, Move, kBroken},
    {EngineDecodeFailed, Move, Move, kBroken},
    {NoModelLoaded, Move, Move, kBroken},
    {WeightsLoading, Move, Move, kFull},
    {StillWritable, Move, Move, kFull},
    {NumericFault, PassOn, PassOn, "the same model and text give the same values on every host"},
    {FileNotFound, Move, Move, kFiles},
    {FileCorrupt, Move, Move, kFiles},
    {UnsupportedModel, Move, Move, kFiles},
    {UntrustedSegment, Move, Move, kBroken},
    {SocketInUse, Move, Move, kFiles},
    {ConnectionRefused, Move, Move, kBroken},
    {ConnectionLost, Move, Move, kBroken},
    {TimedOut, PassOn, PassOn, "the request's own deadline has passed"},
    {DiskFull, Move, Move, kFull},
    {OutOfMemory, Move, Move, kFull},
    {SystemError, Move, Move, kBroken},
    {NoDevice, Move, Move, kFiles},
    {DeviceUnsupported, Move, Move, kFiles},
    {DeviceFault, Move, Move, kBroken},
    {StaleGraph, Move, Move, kBroken},
    {QuotaTokens, PassOn, Move, kQuota},
    {ProtocolMismatch, Move, Move, kFiles},
    {QuotaRequests, PassOn, Move, kQuota},
    {RequestCancelled, PassOn, PassOn, "an operator or the tenant ended the request"},
    {CellLost, Move, Move, "another host is still a member of the cell"},
}};

constexpr bool rows_follow_the_enum() {
  for (int i = 0; i < kErrcCount; ++i) {
    if (static_cast<int>(kRows[static_cast<std::size_t>(i)].code) != i) return false;
  }
  return true;
}
static_assert(rows_follow_the_enum());
static_assert(std::ranges::none_of(kRows, [](const Row& row) { return row.reason.empty(); }));

const Row& row(Errc code) {
  return kRows[static_cast<std::size_t>(code)];
}

}  // namespace

ErrorOutcome outcome_of(Errc code, TextStage stage) {
  return stage == TextStage::Starting ? row(code).starting : row(code).continuing;
}

std::string_view outcome_reason(Errc code) {
  return row(code).reason;
}

ErrorOutcome outcome_of_status(int status) {
  const bool may_be_the_hosts = status >= 500 || status == 408 || status == 429 || status < 400;
  return may_be_the_hosts ? ErrorOutcome::Move : ErrorOutcome::PassOn;
}

}  // namespace leasehold::gateway
