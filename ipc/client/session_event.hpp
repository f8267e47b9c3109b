/// Events that a session reports to its observer. None of them holds a lease token.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ipc/control/messages.hpp"

namespace leasehold::client {

/// The broker granted a lease.
struct Acquired {
  LeaseId lease;
  std::string worker;
  std::uint32_t blocks = 0;
  std::int64_t ttl_ms = 0;
  std::int64_t deadline_boottime_ns = 0;
  std::optional<LeaseId> replaces;
  /// How many of `blocks` hold the memory of the replaced lease.
  std::uint32_t adopted_blocks = 0;
};

/// The worker accepted the request.
struct Submitted {
  LeaseId lease;
  std::uint32_t prompt_tokens = 0;
  /// Rules of the schema that the worker does not check, as in RequestSubmitted; only for the first
  /// submission.
  std::vector<std::string> unchecked;
  std::uint32_t unchecked_omitted = 0;
  std::string adapter_digest;  ///< As in RequestSubmitted.
};

struct TokenArrived {
  LeaseId lease;
  wire::TokenEmitted token;
};

/// The next tokens of the prompt, of a request with `prompt_logprobs`. Each position arrives once,
/// in order, over all leases.
struct PromptLogprobsArrived {
  wire::PromptLogprobs logprobs;
};

/// The end of a lease ended the stream. `Rebound` or `Ended` follows.
struct Interrupted {
  wire::RequestCompleted completed;
  std::uint32_t delivered_tokens = 0;
};

/// The stream continues under another lease, or after the end of a published text that it read. In
/// the latter case `old_lease` is the lease of the text.
struct Rebound {
  LeaseId old_lease;
  LeaseId new_lease;
  std::uint32_t delivered_tokens = 0;
  /// Arithmetic of the new lease's worker, if it differs from that of the old one; else empty.
  std::string other_arithmetic = {};
  wire::RebindMode mode = wire::RebindMode::Reprefill;
  /// Time from the end of the old stream to the start of the new one. For a move: time from the
  /// decision to the worker's reply.
  Duration took{};
};

/// The session tries again after `delay`.
struct Retrying {
  Error error;
  Duration delay{};
  int attempt = 0;  ///< 1 is the first retry.
};

/// The connection to the broker broke. The stream continues; the session reconnects until the
/// lease's deadline.
struct BrokerDisconnected {
  Error error;
};

/// The last event; reported once, after the lease was released.
struct Ended {
  std::optional<Error> error;  ///< None: the request completed, or was cancelled by the caller.
  std::string reason;          ///< From the worker, e.g. "MaxTokensReached"; empty with `error`.
  std::uint32_t delivered_tokens = 0;
  std::string note;  ///< The worker's remark on a normal end, e.g. that the context is full.
  std::string text;  ///< The last text, which the worker held back until the end was known.
  /// RequestCompleted::cached_tokens; 0 also if it is not known because the worker that read the
  /// prompt died.
  std::uint32_t cached_tokens = 0;
  std::string embedding = {};  ///< See RequestCompleted.
};

using SessionEvent = std::variant<Acquired, Submitted, PromptLogprobsArrived, TokenArrived,
                                  Interrupted, Rebound, Retrying, BrokerDisconnected, Ended>;

}  // namespace leasehold::client
