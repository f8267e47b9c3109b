#include "tools/gateway/decide/error_outcome.hpp"

#include <array>
#include <utility>

#include "common/errc_rows.hpp"

namespace leasehold::gateway {
namespace {

struct Row {
  Errc code;
  ErrorOutcome starting;
  ErrorOutcome moving;
  ErrorOutcome running;
};

using enum Errc;
using enum ErrorOutcome;

// An error about the host moves the text, and one about the request is passed on. A limit is the
// tenant's: a new request elsewhere would multiply it, and a text that moved may go to a host with
// room. Each host has its own keys and adapters: one that an earlier host accepted may be missing
// on this host alone, and one that is revoked while its text runs ends the text.
constexpr std::array<Row, kErrcCount> kRows{{
    {BadRequest, PassOn, PassOn, PassOn},
    {MalformedMessage, PassOn, PassOn, PassOn},
    {MessageTooLarge, PassOn, PassOn, PassOn},
    {UnknownMethod, PassOn, PassOn, PassOn},
    {PermissionDenied, PassOn, PassOn, PassOn},  // the tenant may not do this
    {BadToken, PassOn, Leave, PassOn},           // this host lacks the key, or its own was revoked
    {UnknownTenant, PassOn, Leave, PassOn},      // the same of the key's tenant
    {UnknownWorker, Move, Move, Move},
    {UnknownLease, Move, Move, Move},
    {UnknownRequest, PassOn, PassOn, PassOn},  // the text that the request names is not there
    {QuotaConcurrent, PassOn, Move, Move},
    {QuotaBlocks, PassOn, PassOn, PassOn},  // the text is larger than the tenant's limit of blocks
    {QueueFull, Move, Move, Move},
    {PoolExhausted, Move, Move, Move},
    {OutOfBlocks, Move, Move, Move},
    {PromptTooLong, PassOn, PassOn, PassOn},
    {Draining, Move, Move, Move},  // the host ends its service, and another one has not
    {RebindRateLimited, PassOn, Move, Move},
    {LeaseRevoked, Move, Move, Move},
    {LeaseFenced, Move, Move, Move},
    {EngineLeaseFenced, Move, Move, Move},
    {MissingWeight, Move, Move, Move},
    {StaleGeneration, Move, Move, Move},
    {IllegalTransition, Move, Move, Move},
    {RequestIdConflict, PassOn, Move,
     Move},  // of a text that moved: its own earlier run has the id
    {BrokerLost, Move, Move, Move},
    {EngineDecodeFailed, Move, Move, Move},
    {NoModelLoaded, Move, Move, Move},
    {WeightsLoading, Move, Move, Move},
    {StillWritable, Move, Move, Move},
    {NumericFault, PassOn, PassOn,
     PassOn},  // the same model and text give the same values on every host
    {FileNotFound, Move, Move, Move},
    {FileCorrupt, Move, Move, Move},
    {UnsupportedModel, Move, Move, Move},
    {UntrustedSegment, Move, Move, Move},
    {SocketInUse, Move, Move, Move},
    {ConnectionRefused, Move, Move, Move},
    {ConnectionLost, Move, Move, Move},
    {TimedOut, PassOn, PassOn, PassOn},  // the request's own deadline has passed
    {DiskFull, Move, Move, Move},
    {OutOfMemory, Move, Move, Move},
    {SystemError, Move, Move, Move},
    {NoDevice, Move, Move, Move},
    {DeviceUnsupported, Move, Move, Move},
    {DeviceFault, Move, Move, Move},
    {StaleGraph, Move, Move, Move},
    {QuotaTokens, PassOn, Move, Move},
    {ProtocolMismatch, Move, Move, Move},
    {QuotaRequests, PassOn, Move, Move},
    {RequestCancelled, PassOn, PassOn, PassOn},  // an operator or the tenant ended the request
    {CellLost, Move, Move, Move},                // another host is still a member of the cell
    {UnknownAdapter, Leave, Leave, PassOn},      // this host lacks the adapter, or it was removed
    {QuotaAdapters, PassOn, Move, Move},
}};

static_assert(rows_follow_errc(kRows));

const Row& row(Errc code) {
  return kRows[static_cast<std::size_t>(code)];
}

}  // namespace

ErrorOutcome outcome_of(Errc code, TextStage stage) {
  switch (stage) {
    case TextStage::Starting:
      return row(code).starting;
    case TextStage::Moving:
      return row(code).moving;
    case TextStage::Running:
      return row(code).running;
  }
  std::unreachable();
}

ErrorOutcome outcome_of_status(int status) {
  const bool may_be_the_hosts = status >= 500 || status == 408 || status == 429 || status < 400;
  return may_be_the_hosts ? ErrorOutcome::Move : ErrorOutcome::PassOn;
}

}  // namespace leasehold::gateway
