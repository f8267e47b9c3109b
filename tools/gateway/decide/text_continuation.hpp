/// One client's request, from host to host: decides when a text moves, where to, and which bytes
/// the client receives. Pure: events and time come in, actions go out.
///
/// The law: each position of each choice is forwarded once, from a complete group, in order.
/// `tokens_` is both what was forwarded and what the next host is given. A host's stream must count
/// on from there, and a group is forwarded only if its position is the size of its list. A host
/// whose token differs from a forwarded one is left.
///
/// Until a host has accepted the request, each host is asked once, and the last refusal is the
/// answer. Afterwards the text waits for a host for at most `move_timeout`.
///
/// While a host drains or is silent, its successor runs beside it: both streams are read, the first
/// complete group of a position is forwarded, and the old host is closed when the successor is
/// level with it. A successor that stays behind is asked again with the tokens of now; its prefix
/// is cached by then. If a silent host sends the next group first, its successor is closed.
///
/// Tokens of a choice come from one version of its adapter. The next host is given the version, and
/// one that names another is left.
///
/// A host of a cell that leaves it, or joins it again, is left at the next event, before that event
/// is looked at.
///
/// The caller does what an action says before it passes the next event. After Finish, PassAnswer or
/// FailRequest the request has ended: every exchange is closed, and every event is ignored.
/// Threads: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/gateway/decide/error_outcome.hpp"
#include "tools/gateway/decide/place.hpp"
#include "tools/gateway/decide/silence_clock.hpp"
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
  SilenceLimits silence;
  Duration move_timeout = std::chrono::seconds(30);  ///< Without a host.
};

class TextContinuation {
 public:
  explicit TextContinuation(ContinuationTerms terms);

  /// Appends to `actions` what to do. The first event is RequestArrived.
  void on(const TextEvent& event, const HostTable& hosts, TimePoint now, TextActions& actions);

  /// When to pass TimerFired at the latest; earlier times are allowed. Nothing after the end.
  std::optional<TimePoint> next_deadline() const;

  bool has_ended() const { return has_ended_; }
  /// Hosts that took the text over from another one. A successor counts when the old host is left.
  std::uint32_t moves() const { return moves_; }
  /// Token ids that were forwarded, per choice.
  const EmittedTokens& tokens() const { return tokens_; }

 private:
  /// How long a text avoids a host that failed.
  static constexpr Duration kAfterFailure = std::chrono::milliseconds(500);

  /// What every step reads and writes.
  struct Step {
    const HostTable& hosts;
    TimePoint now;
    TextActions& actions;
  };

  /// One exchange with a host.
  struct Attempt {
    AttemptId id;
    HostId host;
    std::optional<Incarnation> incarnation;  ///< Of the host, when it was opened.
    HostStreamParser parser;
    std::vector<std::uint32_t> positions;  ///< Per choice: the next one that it sends.
    SilenceClock clock;
    bool has_groups = false;
  };

  /// Why an exchange is given up, and for how long the text avoids its host.
  struct Loss {
    MoveCause cause;
    Error error;
    Duration avoid;
    bool is_closed = false;  ///< The host has ended the exchange itself.
  };

  struct Avoided {
    HostId host;
    TimePoint until;
  };

  /// The search for the next host.
  struct Search {
    std::optional<TimePoint> since;     ///< When the text lost its host.
    TimePoint retry_at;                 ///< Hosts are asked for again.
    std::optional<HostId> from;         ///< The last host that had accepted the text.
    bool may_run_there = false;         ///< See OpenHost.
    std::optional<AttemptId> refused;   ///< The newest refusal.
    MoveCause cause = MoveCause::None;  ///< Cause of the newest loss, as its error.
    Error error{Errc::ConnectionLost, {}};
  };

  void handle(const RequestArrived& event, const Step& step);
  void handle(const HostAccepted& event, const Step& step);
  void handle(const HostRefused& event, const Step& step);
  void handle(const HostBytes& event, const Step& step);
  void handle(const HostLost& event, const Step& step);
  void handle(const TimerFired& event, const Step& step);
  void handle(const ClientLeft& event, const Step& step);
  void handle(const GatewayStopped& event, const Step& step);

  void take(Attempt& from, TokenGroup& group, const Step& step);
  void take(Attempt& from, const Beat& beat, const Step& step);
  void take(Attempt& from, const AdapterNamed& adapter, const Step& step);
  void take(Attempt& from, EndingGroup& ending, const Step& step);
  void take(Attempt& from, HostError& error, const Step& step);
  void hand_over(bool is_first_group, const Step& step);

  void open(std::optional<Attempt>& as, HostId host, MoveCause cause, const Step& step);
  void open_next(const Step& step);
  void start_successor(const Step& step);
  void promote_successor(const Step& step);
  std::optional<WantedIdentity> wanted_of(bool as_successor) const;
  Result<HostId> choose(const Step& step) const;
  std::optional<Error> reason_to_stay(const Step& step) const;
  bool lacks_arithmetic(const Step& step) const;
  void give_up(const Error& error, const Step& step);
  void lose(AttemptId id, const Loss& loss, const Step& step);
  void lose_if_late(std::optional<Attempt>& attempt, const Step& step);
  void lose_if_gone(std::optional<Attempt>& attempt, const Step& step);
  std::optional<SilenceClock::Failure> failure_of(Attempt& attempt, const Step& step) const;
  bool may_have_successor() const;
  bool needs_successor(const Step& step) const;
  void avoid(HostId host, TimePoint until);

  void end(const Step& step);
  void fail_request(Error error, const Step& step);

  Attempt* find(AttemptId id);
  bool is_successor(AttemptId id) const { return successor_ && successor_->id == id; }

  ContinuationTerms terms_;
  EmittedTokens tokens_;
  std::vector<std::string> adapters_;  // per choice: the version of its adapter; empty: none named
  std::string identity_;               // of the newest host that has had the text
  std::optional<Attempt> current_;
  std::optional<Attempt> successor_;  // while the current host drains, sleeps or is silent
  Search search_;
  std::vector<Avoided> avoided_;
  std::vector<HostEvent> events_;  // of one HostBytes
  std::uint64_t last_attempt_ = 0;
  std::uint32_t moves_ = 0;
  std::uint32_t refreshes_ = 0;  // of this successor
  bool was_accepted_ = false;
  bool has_ended_ = false;
};

}  // namespace leasehold::gateway
