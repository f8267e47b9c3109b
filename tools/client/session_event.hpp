/// What a session tells whoever watches it. None of it holds a lease token.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "ipc/control/messages.hpp"

namespace leasehold::tenant {

struct Acquired {
  LeaseId lease;
  std::string worker;
  std::uint32_t blocks = 0;
  std::int64_t ttl_ms = 0;
  std::int64_t deadline_boottime_ns = 0;
  std::optional<LeaseId> replaces;
};

/// The worker took the request.
struct Submitted {
  LeaseId lease;
  std::uint32_t prompt_tokens = 0;
};

struct TokenArrived {
  LeaseId lease;
  wire::TokenEmitted token;
};

/// A lease ended the stream; `Rebound` follows, or `Ended`.
struct Interrupted {
  wire::RequestCompleted completed;
  std::uint32_t delivered_tokens = 0;
};

/// The stream goes on under another lease.
struct Rebound {
  LeaseId old_lease;
  LeaseId new_lease;
  std::uint32_t delivered_tokens = 0;
};

struct Retrying {
  Error error;
  Duration delay{};
  int attempt = 0;  ///< 1 is the first repetition.
};

/// The broker's connection is gone. The stream goes on until the worker ends it.
struct BrokerDisconnected {
  Error error;
};

/// The one end. Reported once, after the lease was given back.
struct Ended {
  std::optional<Error> error;  ///< None: the request was answered, or cancelled as asked.
  std::string reason;          ///< The worker's word, e.g. "MaxTokensReached"; empty with `error`.
  std::uint32_t delivered_tokens = 0;
  std::string note;  ///< What else the worker said about an end that is no error.
  std::string text;  ///< The end of the text, held back until nothing could follow.
};

using SessionEvent = std::variant<Acquired, Submitted, TokenArrived, Interrupted, Rebound, Retrying,
                                  BrokerDisconnected, Ended>;

}  // namespace leasehold::tenant
