/// What happens to a client's request, and what the gateway does about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tools/gateway/decide/host_stream.hpp"
#include "tools/gateway/decide/host_table.hpp"

namespace leasehold::gateway {

/// One exchange with a host for a request. Increases and is never reused within a request, so that
/// an event of a closed exchange cannot be mistaken for one of its successor.
using AttemptId = StrongId<struct GatewayAttemptTag>;

// ── Events ──

/// The client's request was read.
struct RequestArrived {};

/// A host answered with status 200 and a stream of the asked form.
struct HostAccepted {
  AttemptId attempt;
  std::string identity;  ///< Leasehold-Identity; empty without it.
};

/// A host answered with another status, or with another type of content. The caller keeps the
/// answer of the newest refusal for PassAnswer.
struct HostRefused {
  AttemptId attempt;
  int status = 0;
  /// The error in the body, if this version knows its code; its retry_after_ms is that of the head.
  std::optional<Error> error;
};

/// The next bytes of an accepted stream, without the framing of HTTP.
struct HostBytes {
  AttemptId attempt;
  std::string_view bytes;
};

/// The connection could not be opened, failed, or ended. `error` names the host.
struct HostLost {
  AttemptId attempt;
  Error error;
};

/// A time of TextContinuation::next_deadline has come.
struct TimerFired {};

/// The client closed its connection.
struct ClientLeft {};

/// The gateway stops, and waits no longer for the end of the text. The client gets `error`.
struct GatewayStopped {
  Error error;
};

using TextEvent = std::variant<RequestArrived, HostAccepted, HostRefused, HostBytes, HostLost,
                               TimerFired, ClientLeft, GatewayStopped>;

// ── Actions ──

/// Why the exchange before ended, or has a successor.
enum class MoveCause : std::uint8_t {
  None,     ///< The first host, or a successor that is asked again with more tokens.
  Lost,     ///< The connection ended or failed.
  Silent,   ///< Beats were missing, or the host did not answer.
  Stalled,  ///< There were beats and no token for too long.
  Error,    ///< The host ended or refused the request with an error that another may not give.
  Draining,
  OtherIdentity,  ///< The host could only continue with another text.
  Malformed,      ///< The host's stream broke the form, or contradicted the text.
  Gone,           ///< The host has left its cell, or joined it again.
};

inline constexpr int kMoveCauseCount = static_cast<int>(MoveCause::Gone) + 1;

std::string_view name(MoveCause cause);

/// True if the host may still compute the text: it was not asked to stop, or did not hear of it.
constexpr bool may_still_run(MoveCause cause) {
  return cause == MoveCause::Lost || cause == MoveCause::Silent || cause == MoveCause::Gone;
}

/// Send the request to a host: the same body with `emitted`.
struct OpenHost {
  AttemptId attempt;
  HostId host;
  EmittedTokens emitted;
  std::vector<std::string> adapters;  ///< Per choice: AdapterNamed::digest of its tokens, or empty.
  std::optional<HostId> moved_from;   ///< The last host that had accepted the text.
  bool may_run_there = false;         ///< That host was lost, and may not know that it was.
  MoveCause cause = MoveCause::None;
};

/// Close the exchange, which cancels the request at the host.
struct CloseHost {
  AttemptId attempt;
};

/// Send these bytes of the stream to the client.
struct Forward {
  std::string bytes;
};

/// The text is complete. The exchange has ended regularly, so that its connection may be kept.
struct Finish {
  AttemptId attempt;
  std::string document;  ///< The whole answer if the client asked for no stream.
};

/// Pass the host's answer, which refuses the request, on to the client.
struct PassAnswer {
  AttemptId attempt;
};

/// End the client's request with an error: an answer if its head was not sent, else an event.
struct FailRequest {
  Error error;
  bool is_announced = false;  ///< The host's error event was forwarded.
  std::string document;  ///< The host's error body if the client asked for no stream, or empty.
};

using TextAction = std::variant<OpenHost, CloseHost, Forward, Finish, PassAnswer, FailRequest>;
using TextActions = std::vector<TextAction>;

}  // namespace leasehold::gateway
