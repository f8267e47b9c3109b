/// What a tenant asks of the scheduler, and the closed list of how a request ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "common/clock.hpp"
#include "common/ids.hpp"
#include "worker/text/grammar/grammar_vocabulary.hpp"
#include "worker/text/sampling/params.hpp"

namespace leasehold {

struct PromptRequest {
  TenantId tenant;
  LeaseId lease;  ///< Where its KV lies.
  RequestId engine_request_id;
  std::vector<TokenId> prompt;          ///< Not empty.
  std::vector<TokenId> emitted;         ///< After a rebind: delivered before, in order.
  std::optional<LeaseId> rebound_from;  ///< … under this lease.
  SamplingParams sampling;
  TextConstraint constraint;             ///< What `sampling.grammar` says, ready to be followed.
  std::uint32_t max_emitted_tokens = 0;  ///< Counts `emitted` too.
  std::optional<TimePoint> deadline;
};

/// With room for a token, unless some were delivered before: those may have been the last.
inline bool fits_context(const PromptRequest& request, std::uint32_t max_context) {
  const std::size_t known = request.prompt.size() + request.emitted.size();
  return known < max_context || (known == max_context && !request.emitted.empty());
}

enum class CompletionReason : std::uint8_t {
  EndOfSequence,
  MaxTokensReached,
  StopSequence,
  Cancelled,
  Preempted,
  Revoked,
  LeaseFenced,
  DeadlineExceeded,
  EngineError,
};

constexpr std::string_view name(CompletionReason reason) {
  switch (reason) {
    case CompletionReason::EndOfSequence:
      return "EndOfSequence";
    case CompletionReason::MaxTokensReached:
      return "MaxTokensReached";
    case CompletionReason::StopSequence:
      return "StopSequence";
    case CompletionReason::Cancelled:
      return "Cancelled";
    case CompletionReason::Preempted:
      return "Preempted";
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
