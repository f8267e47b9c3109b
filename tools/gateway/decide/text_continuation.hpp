/// One client's request, from host to host: decides when a text moves, where to, and which bytes
/// the client receives. Pure: events and time come in, actions go out.
///
/// The law: each position of each choice is forwarded once, from a complete group, in order. It
/// holds because `tokens_` is both what was forwarded and what the next host is given, because a
/// host's stream must count on from there, and because a group is forwarded only if its position is
/// the size of its list. A host whose token differs from a forwarded one is left.
///
/// Until a host has accepted the request, each host is asked once, and the last refusal is the
/// answer. Afterwards the text waits for a host for at most `move_timeout`.
///
/// The caller does what an action says before it passes the next event. After Finish, PassAnswer or
/// FailRequest `has_ended`, and every event is ignored.
/// Threads: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/gateway/decide/error_outcome.hpp"
#include "tools/gateway/decide/place.hpp"
#include "tools/gateway/decide/text_events.hpp"

namespace leasehold::gateway {

struct ContinuationTerms {
  std::string model;
  std::uint64_t placement = 0;  ///< placement_digest.
  AnswerForm form = AnswerForm::Events;
  HostStreamLimits limits;
  bool any_arithmetic = false;
  /// False: the body cannot be sent again, so that the first host is the only one.
  bool is_replayable = true;
  std::uint32_t max_moves = 8;
  Duration beat = std::chrono::milliseconds(500);
  Duration head_timeout = std::chrono::seconds(5);       ///< From the request to the answer's head.
  Duration progress_timeout = std::chrono::minutes(10);  ///< From one group to the next.
  Duration move_timeout = std::chrono::seconds(30);      ///< Without a host.
};

class TextContinuation {
 public:
  explicit TextContinuation(ContinuationTerms terms);

  /// Appends to `actions` what to do. The first event is RequestArrived.
  void on(const TextEvent& event, const HostTable& hosts, TimePoint now, TextActions& actions);

  /// When to pass TimerFired at the latest; earlier times are allowed. Nothing after the end.
  std::optional<TimePoint> next_deadline() const;

  bool has_ended() const { return has_ended_; }
  /// Hosts that accepted the text after its first.
  std::uint32_t moves() const { return moves_; }
  /// Token ids that were forwarded, per choice.
  const EmittedTokens& tokens() const { return tokens_; }
};

}  // namespace leasehold::gateway
