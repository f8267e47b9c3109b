/// The events of the scheduler. Order within a tick: last tokens of requests that end, completions,
/// rejections, rebinds, other tokens.
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
};

/// The end of a request. Every admitted request gets exactly one.
struct Completed {
  RequestId engine_request_id;
  CompletionReason reason = CompletionReason::EngineError;
  std::uint32_t emitted_tokens = 0;
  std::optional<RevocationInfo> revocation;  ///< With Revoked and LeaseFenced.
  std::optional<Error> error;                ///< With EngineError.
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
};

using SchedulerEvent = std::variant<Completed, AdmissionRejected, Rebound, Token>;

}  // namespace leasehold
