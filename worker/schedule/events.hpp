/// The events of the scheduler. Order within a tick: last tokens of requests that end, completions,
/// rejections, rebinds, preemptions, other tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "common/clock.hpp"
#include "ipc/segment/lease_word.hpp"
#include "worker/schedule/request.hpp"
#include "worker/text/sampling/sampler.hpp"

namespace leasehold {

/// One committed token. `position` 0 is the first emitted token of the request; rebinds continue
/// the count. Each position is delivered exactly once.
struct Token {
  RequestId engine_request_id;
  TokenId token = 0;
  std::uint32_t position = 0;
  std::optional<Logprobs> logprobs = {};  ///< When requested.
};

/// Why a lease ended a request.
struct RevocationInfo {
  LeaseId lease;
  RevokeReason reason = RevokeReason::None;
  /// Shared: a published text ended, and the request may continue under its own lease.
  FailureScope scope = FailureScope::Tenant;
  bool is_local = false;  ///< The worker stopped it at the lease's deadline, without a word.
};

/// The end of a request. Every admitted request gets exactly one.
struct Completed {
  RequestId engine_request_id;
  CompletionReason reason = CompletionReason::EngineError;
  std::uint32_t emitted_tokens = 0;
  std::optional<RevocationInfo> revocation;  ///< With Revoked and LeaseFenced.
  std::optional<Error> error;                ///< With EngineError.
  std::uint32_t cached_tokens = 0;           ///< PromptRequest::cached.
};

/// The end of a request that was queued and never admitted.
struct AdmissionRejected {
  RequestId engine_request_id;
  Error reason;
  LeaseId lease;                     ///< The lease it waited for.
  std::uint32_t emitted_tokens = 0;  ///< Under earlier leases.
};

/// A request continues under another lease.
struct Rebound {
  RequestId engine_request_id;
  LeaseId old_lease;
  LeaseId new_lease;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t emitted_tokens = 0;  ///< Before, under other leases.
  std::optional<Duration> moved_in;  ///< Its blocks were copied, so long after the call.
};

/// A running request gave its blocks to others, and waits. Its tokens continue once it is admitted
/// again.
struct Preempted {
  RequestId engine_request_id;
  Errc cause = Errc::PoolExhausted;  ///< Or QuotaBlocks.
  std::uint32_t freed_blocks = 0;    ///< That another sequence can take, cached ones included.
  std::uint32_t swapped_blocks = 0;  ///< Copied to swap; 0: its rows are computed again.
  std::uint32_t emitted_tokens = 0;
};

/// Blocks of a sequence or of the prefix cache begin, or cease, to hold text of a request. Each
/// admission, also one after a preemption, is followed by one change to held and, later, by one to
/// not held. Blocks in swap hold the text too, so neither a swap-out nor a swap-in is a change.
struct KvChange {
  RequestId engine_request_id;
  bool is_held = false;
};

/// A shared lease holds its text now, or why it never will. Goes to the broker, not to a client.
struct PrefixFilled {
  LeaseId lease;
  Result<std::uint32_t> blocks = 0;  ///< That sequences can borrow.
};

/// What happened to a swapped request whose blocks went to the spill file. For the log: the request
/// goes on in every case.
struct SpillEvent {
  enum class Kind : std::uint8_t {
    Spilled,      ///< All its blocks are in the file.
    Returned,     ///< All its blocks are back.
    WriteFailed,  ///< It stays in swap.
    ReadFailed,   ///< Its rows are computed again.
  };
  static constexpr std::size_t kKindCount = 4;

  RequestId engine_request_id;
  Kind kind = Kind::Spilled;
  std::uint32_t blocks = 0;
  std::optional<Error> why;  ///< With the failures.
};

using SchedulerEvent = std::variant<Completed, AdmissionRejected, Rebound, Preempted, Token>;

}  // namespace leasehold
