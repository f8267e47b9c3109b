#include "tools/gateway/decide/error_outcome.hpp"

#include <array>

namespace leasehold::gateway {
namespace {

struct Row {
  Errc code;
  ErrorOutcome starting;
  ErrorOutcome continuing;
};

using enum Errc;
using enum ErrorOutcome;

// An error about the host moves the text, and one about the request is passed on. A limit is the
// tenant's: a new request elsewhere would multiply it, and a text that moved may go to a host with
// room.
constexpr std::array<Row, kErrcCount> kRows{{
    {BadRequest, PassOn, PassOn},
    {MalformedMessage, PassOn, PassOn},
    {MessageTooLarge, PassOn, PassOn},
    {UnknownMethod, PassOn, PassOn},
    {PermissionDenied, PassOn, PassOn},  // the tenant may not do this
    {BadToken, PassOn, PassOn},          // the key is not valid, or was revoked while the text ran
    {UnknownTenant, PassOn, PassOn},     // the tenant was not admitted, or was removed
    {UnknownWorker, Move, Move},
    {UnknownLease, Move, Move},
    {UnknownRequest, PassOn, PassOn},  // the text that the request names is not there
    {QuotaConcurrent, PassOn, Move},
    {QuotaBlocks, PassOn, PassOn},  // the text is larger than the tenant's limit of blocks
    {QueueFull, Move, Move},
    {PoolExhausted, Move, Move},
    {OutOfBlocks, Move, Move},
    {PromptTooLong, PassOn, PassOn},
    {Draining, Move, Move},  // the host ends its service, and another one has not
    {RebindRateLimited, PassOn, Move},
    {LeaseRevoked, Move, Move},
    {LeaseFenced, Move, Move},
    {EngineLeaseFenced, Move, Move},
    {MissingWeight, Move, Move},
    {StaleGeneration, Move, Move},
    {IllegalTransition, Move, Move},
    {RequestIdConflict, PassOn, Move},  // of a text that moved: its own earlier run has the id
    {BrokerLost, Move, Move},
    {EngineDecodeFailed, Move, Move},
    {NoModelLoaded, Move, Move},
    {WeightsLoading, Move, Move},
    {StillWritable, Move, Move},
    {NumericFault, PassOn, PassOn},  // the same model and text give the same values on every host
    {FileNotFound, Move, Move},
    {FileCorrupt, Move, Move},
    {UnsupportedModel, Move, Move},
    {UntrustedSegment, Move, Move},
    {SocketInUse, Move, Move},
    {ConnectionRefused, Move, Move},
    {ConnectionLost, Move, Move},
    {TimedOut, PassOn, PassOn},  // the request's own deadline has passed
    {DiskFull, Move, Move},
    {OutOfMemory, Move, Move},
    {SystemError, Move, Move},
    {NoDevice, Move, Move},
    {DeviceUnsupported, Move, Move},
    {DeviceFault, Move, Move},
    {StaleGraph, Move, Move},
    {QuotaTokens, PassOn, Move},
    {ProtocolMismatch, Move, Move},
    {QuotaRequests, PassOn, Move},
    {RequestCancelled, PassOn, PassOn},  // an operator or the tenant ended the request
    {CellLost, Move, Move},              // another host is still a member of the cell
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

ErrorOutcome outcome_of(Errc code, TextStage stage) {
  return stage == TextStage::Starting ? row(code).starting : row(code).continuing;
}

ErrorOutcome outcome_of_status(int status) {
  const bool may_be_the_hosts = status >= 500 || status == 408 || status == 429 || status < 400;
  return may_be_the_hosts ? ErrorOutcome::Move : ErrorOutcome::PassOn;
}

}  // namespace leasehold::gateway
