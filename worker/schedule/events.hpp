/// The events of the scheduler. Order within a tick: admissions, last log probabilities of the
/// prompts of completed requests, their last tokens, completions, rejections, rebinds, preemptions,
/// other log probabilities of prompts, other tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

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
  std::optional<Logprobs> logprobs = {};  ///< Set when requested.
};

/// A token of a prompt, with the log probability that the model gave it after the tokens before.
struct PromptToken {
  TokenId token = 0;
  std::optional<Logprobs> logprobs = {};  ///< None for the first token of the prompt.
  bool operator==(const PromptToken&) const = default;
};

/// Prompt tokens of a request with PromptRequest::prompt_logprobs, from `position` on. Each
/// position is delivered exactly once, in order, before the first token of the request. Events of
/// rebinds continue where the earlier ones ended.
struct PromptLogprobs {
  RequestId engine_request_id;
  std::uint32_t position = 0;
  std::vector<PromptToken> tokens;
};

/// The first admission of a traced request (PromptRequest::is_traced). Other requests have none.
struct Admitted {
  RequestId engine_request_id;
  TimePoint at;
};

/// Why a lease ended a request.
struct RevocationInfo {
  LeaseId lease;
  RevokeReason reason = RevokeReason::None;
  /// Shared or Adapter: the lease of the published text that the request reads, or of its adapter,
  /// ended; the request may continue under its own lease.
  FailureScope scope = FailureScope::Tenant;
  bool is_local = false;  ///< The worker stopped the request at the lease's deadline; the lease
                          ///< word was not changed.
};

/// The end of a request. Every admitted request gets exactly one.
struct Completed {
  RequestId engine_request_id;
  CompletionReason reason = CompletionReason::EngineError;
  std::uint32_t emitted_tokens = 0;
  std::optional<RevocationInfo> revocation;         ///< Set with Revoked and LeaseFenced.
  std::optional<Error> error;                       ///< Set with EngineError and RequestCancelled.
  std::optional<std::uint32_t> cached_tokens = {};  ///< PromptRequest::cached; none: not admitted.
  /// Set with PromptRequest::embedding, if the prompt was read.
  std::vector<float> embedding = {};
};

/// The end of a request that was queued and never admitted.
struct AdmissionRejected {
  RequestId engine_request_id;
  Error reason;
  LeaseId lease;                     ///< The lease under which the request waited.
  std::uint32_t emitted_tokens = 0;  ///< Tokens emitted under earlier leases.
};

/// A request continues under another lease.
struct Rebound {
  RequestId engine_request_id;
  LeaseId old_lease;
  LeaseId new_lease;
  std::uint32_t prompt_tokens = 0;
  std::uint32_t emitted_tokens = 0;  ///< Tokens emitted under earlier leases.
  /// For a move that copied the blocks: the time from the call to the end of the move.
  std::optional<Duration> move_duration;
};

/// A running request was preempted: its blocks were freed for other sequences, and it waits again.
/// Its tokens continue once it is readmitted.
struct Preempted {
  RequestId engine_request_id;
  Errc cause = Errc::PoolExhausted;  ///< PoolExhausted or QuotaBlocks.
  /// Blocks that other sequences can now take, cached ones included.
  std::uint32_t freed_blocks = 0;
  /// Blocks copied to swap; 0: the request's rows are computed again.
  std::uint32_t swapped_blocks = 0;
  std::uint32_t emitted_tokens = 0;
};

/// Blocks of a sequence or of the prefix cache start or stop holding text of a request. Each
/// admission, also one after a preemption, is followed by one change to held and later by one to
/// not held. Blocks in swap count as holding the text, so a swap-out or swap-in is not a change.
struct KvChange {
  RequestId engine_request_id;
  bool is_held = false;
};

/// The result of filling a shared lease: its text is computed, or the fill failed. Reported to the
/// broker, not to a client.
struct PrefixFilled {
  LeaseId lease;
  Result<std::uint32_t> blocks = 0;  ///< Number of blocks that sequences can read.
};

/// What happened to a swapped request in connection with the spill file. For the log only; the
/// request continues in every case.
struct SpillEvent {
  enum class Kind : std::uint8_t {
    Spilled,      ///< All its blocks are in the file.
    Returned,     ///< All its blocks are back.
    WriteFailed,  ///< The request stays in swap.
    ReadFailed,   ///< The request's rows are computed again.
  };
  static constexpr std::size_t kKindCount = 4;

  RequestId engine_request_id;
  Kind kind = Kind::Spilled;
  std::uint32_t blocks = 0;
  std::optional<Error> why;  ///< Set with WriteFailed and ReadFailed.
};

using SchedulerEvent =
    std::variant<Completed, AdmissionRejected, Rebound, Preempted, PromptLogprobs, Token, Admitted>;

}  // namespace leasehold
