/// A request as it is submitted to the scheduler, and the complete list of reasons for its end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "common/clock.hpp"
#include "common/ids.hpp"
#include "common/result.hpp"
#include "worker/schedule/adapter_use.hpp"
#include "worker/schedule/embedding.hpp"
#include "worker/schedule/tenants/rate_owner.hpp"
#include "worker/text/grammar/grammar_vocabulary.hpp"
#include "worker/text/sampling/params.hpp"

namespace leasehold {

/// The adapter under which a request runs.
struct RequestAdapter {
  std::string name;           ///< Empty: the base model.
  std::uint32_t version = 0;  ///< The only version that may be used; 0: the newest one.
  std::string continued;      ///< Digest of the version that began the text; empty: not known.

  // Set by the engine (AdapterWaits), before the request is queued.
  AdapterUse use;      ///< Null: the base model.
  double share = 0.0;  ///< Bytes of the adapter ÷ bytes of the model.
};

struct PromptRequest {
  TenantId tenant;
  LeaseId lease;  ///< Holds the request's KV cache.
  RequestId engine_request_id;
  std::vector<TokenId> prompt;          ///< Not empty.
  std::vector<TokenId> emitted;         ///< After a rebind: the tokens delivered before, in order.
  std::optional<LeaseId> rebound_from;  ///< The lease under which `emitted` was generated.
  SamplingParams sampling;
  TextConstraint constraint;  ///< `sampling.grammar`, compiled.
  RequestAdapter adapter;
  std::uint32_t max_emitted_tokens = 0;  ///< Includes `emitted`. 0: only the prompt is computed.
  bool may_shorten = false;  ///< `max_emitted_tokens` is a default (RequestFit::shorten).
  /// Number of alternatives to report with the log probability of each prompt token, at most
  /// SamplingParams::kMaxTopLogprobs. Empty: report none of the prompt.
  std::optional<std::uint32_t> prompt_logprobs;
  /// Set: the request ends with the embedding of its prompt (Completed::embedding). It emits no
  /// token, so `max_emitted_tokens` is 0.
  std::optional<EmbeddingRequest> embedding;
  /// Leading prompt positions that were reported, under this lease or earlier ones.
  std::uint32_t reported_positions = 0;
  std::optional<TimePoint> deadline;
  std::int32_t priority = 0;  ///< Compared among the requests of the tenant.
  bool is_traced = false;     ///< Its admission is an event (Admitted).

  // Set by the scheduler.
  std::uint64_t arrival = 0;      ///< Sequence number of the submit. A preempted request keeps it.
  std::uint32_t cached = 0;       ///< Known tokens whose KV was cached at the first admission.
  std::uint32_t charged = 0;      ///< Positions that were cached, or computed before a preemption.
  std::uint32_t block_limit = 0;  ///< The tenant's max_blocks when it was admitted; 0 before.

  RateCharge rate_charge;  ///< Set by the engine (RateAllowances).

  /// True while prompt positions are left to report.
  bool reports_prompt() const { return prompt_logprobs && reported_positions < prompt.size(); }
  /// The first position whose row must be computed even if its keys and values are cached, because
  /// its logits or its hidden state are read. Nothing: only the last row must.
  std::optional<std::uint32_t> first_row_needed() const {
    if (reports_prompt()) return std::max(reported_positions, 1u) - 1;
    if (embedding && embedding->pooling == Pooling::Mean) return embedding->pooled.count();
    return std::nullopt;
  }
  /// Identifies the adapter under which keys and values are computed; null: none.
  const ContentDigest* adapter_digest() const {
    return adapter.use ? &adapter.use->digest : nullptr;
  }
  /// For a waiting request: true if it ran before and was preempted.
  bool was_admitted() const { return block_limit > 0; }
};

inline bool uses(const PromptRequest& request, LeaseId adapter) {
  return request.adapter.use && request.adapter.use->lease == adapter;
}

/// Tokens that are known before the first step: the prompt and, after a rebind, the emitted tokens.
inline std::size_t known_tokens(const PromptRequest& request) {
  return request.prompt.size() + request.emitted.size();
}

/// The order in which the requests of a tenant are admitted: the highest priority first, then
/// preempted requests, then the earliest deadline.
inline auto urgency(const PromptRequest& request) {
  constexpr TimePoint kNever{INT64_MAX};
  const bool is_first = request.was_admitted();
  return std::tuple(-request.priority, !is_first,
                    is_first ? TimePoint{} : request.deadline.value_or(kNever));
}

/// The order of admission inside a lease: by urgency, then by arrival.
inline bool is_admitted_before(const PromptRequest& one, const PromptRequest& other) {
  return std::tuple(urgency(one), one.arrival) < std::tuple(urgency(other), other.arrival);
}

/// Errors: BadRequest for a token outside the vocabulary.
Result<void> check_token_ids(std::span<const TokenId> tokens, std::uint32_t n_vocab);

/// True when the context has room for one more token. A request that emits none may also fill it
/// exactly, and so may a rebound request: its last token may have been delivered already.
inline bool fits_context(const PromptRequest& request, std::uint32_t max_context) {
  const std::size_t known = known_tokens(request);
  const bool may_be_full = !request.emitted.empty() || request.max_emitted_tokens == 0;
  return known < max_context || (known == max_context && may_be_full);
}

/// Why a request ends. Text held back for a stop string or an incomplete character is sent with the
/// end.
enum class CompletionReason : std::uint8_t {
  EndOfSequence,     ///< An end token (never sent), or the last token of a grammar (sent).
  MaxTokensReached,  ///< The request's token limit is reached; the last token is sent.
  ContextFull,       ///< The context is full before the token limit. The last token is sent.
  StopSequence,      ///< A stop token (never sent), or a token that completes a stop string (sent,
                     ///< with its text up to the string).
  Cancelled,
  Revoked,
  LeaseFenced,
  DeadlineExceeded,
  EngineError,
  RequestCancelled,  ///< Cancelled by an operator, or over HTTP by a client of the tenant.
};

constexpr std::string_view name(CompletionReason reason) {
  switch (reason) {
    case CompletionReason::EndOfSequence:
      return "EndOfSequence";
    case CompletionReason::MaxTokensReached:
      return "MaxTokensReached";
    case CompletionReason::ContextFull:
      return "ContextFull";
    case CompletionReason::StopSequence:
      return "StopSequence";
    case CompletionReason::Cancelled:
      return "Cancelled";
    case CompletionReason::RequestCancelled:
      return "RequestCancelled";
    case CompletionReason::Revoked:
      return "Revoked";
    case CompletionReason::LeaseFenced:
      return "LeaseFenced";
    case CompletionReason::DeadlineExceeded:
      return "DeadlineExceeded";
    case CompletionReason::EngineError:
      return "EngineError";
  }
  return "Unknown";
}

}  // namespace leasehold
