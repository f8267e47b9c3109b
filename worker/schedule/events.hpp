/// What the scheduler tells the world. Within a tick: completions, rejections, then tokens by
/// ascending row.
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

/// One committed token. `position` 0 is the first emitted token of the request, counted through
/// rebinds; each position is told exactly once.
struct Token {
  RequestId engine_request_id;
  TokenId token = 0;
  std::uint32_t position = 0;
  std::optional<Logprobs> logprobs = {};  ///< When asked for.
};

/// What a lease said when it ended a request.
struct RevocationInfo {
  LeaseId lease;
  bool engine_scope = false;
  RevokeReason reason = RevokeReason::None;
};

/// The one end of an admitted request.
struct Completed {
  RequestId engine_request_id;
  CompletionReason reason = CompletionReason::EngineError;
  std::uint32_t emitted_tokens = 0;
  std::optional<RevocationInfo> revocation;  ///< With Revoked and LeaseFenced.
  std::optional<Error> error;                ///< With EngineError.
};

/// A request that was queued and will not be admitted.
struct AdmissionRejected {
  RequestId engine_request_id;
  Error reason;
};

struct Preempted {
  RequestId engine_request_id;
};

/// A request goes on under another lease.
struct Rebound {
  RequestId engine_request_id;
  LeaseId old_lease;
  LeaseId new_lease;
  std::uint32_t replayed_tokens = 0;  ///< Prompt and tokens emitted before.
};

using SchedulerEvent = std::variant<Completed, AdmissionRejected, Preempted, Rebound, Token>;

}  // namespace leasehold
