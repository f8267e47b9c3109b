/// Checks from outside what the gateway does with one request. It sees what hosts delivered, what
/// was opened and closed, and what the client received.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/gateway/text.hpp"
#include "tools/gateway/decide/text_continuation.hpp"

namespace leasehold::gateway::simulation {

/// What the judge knows of one exchange.
struct Exchange {
  HostId host;
  IdentityIndex identity = 0;  ///< What the host computes.
  TimePoint heard;             ///< Its last delivered bytes, or when it was opened.
  TimePoint progressed;        ///< Its last complete group.
  bool is_accepted = false;
  bool has_groups = false;
  bool is_faulty = false;       ///< A lie or an error was delivered.
  bool other_identity = false;  ///< Another exchange of the text had another identity.
  bool is_open = true;          ///< Neither side has ended it.
};

class Judge {
 public:
  /// `must_finish`: one host with the text's identity works all the time, and no error is passed
  /// on.
  Judge(const Text& text, const ContinuationTerms& terms, bool must_finish)
      : text_(text), terms_(terms), must_finish_(must_finish) {
    for (std::uint32_t choice = 0; choice < text.choices(); ++choice)
      next_.push_back(after_silent(choice, 0));
  }

  void opened(const OpenHost& open, IdentityIndex identity, TimePoint now);
  void accepted(AttemptId attempt, TimePoint now);
  void delivered(AttemptId attempt, TimePoint now);
  void delivered_group(AttemptId attempt, TimePoint now);
  /// A lie, or an error that ends the stream.
  void delivered_fault(AttemptId attempt) { exchanges_.at(attempt).is_faulty = true; }
  void ended_by_host(AttemptId attempt) { exchanges_.at(attempt).is_open = false; }
  void client_left() { has_left_ = true; }
  /// The gateway reads nothing until then.
  void gateway_stops(TimePoint until) { runs_since_ = std::max(runs_since_, until); }

  /// Checks the actions of one step. `hosts`: as the gateway knows them.
  void check(const TextActions& actions, const TextContinuation& text, const HostTable& hosts,
             TimePoint now);
  /// Checks the end of the schedule.
  void check_end(const TextContinuation& text);

  bool has_finished() const { return has_finished_; }

 private:
  void check_action(const OpenHost& open);
  void check_action(const CloseHost& close);
  void note_host();
  void check_silence() const;
  void check_action(const Forward& forward);
  void check_action(const Finish& finish);
  void check_action(const PassAnswer& pass);
  void check_action(const FailRequest& failed);

  void check_failure(const TextContinuation& text);
  bool may_be_closed(const Exchange& exchange) const;
  bool has_running_exchange() const;
  bool take_group(std::string_view& bytes);
  bool take_ending(std::string_view bytes);
  void check_emitted(const EmittedTokens& emitted);
  std::uint32_t after_silent(std::uint32_t choice, std::uint32_t position) const;
  bool keep_possible(unsigned identities);

  const Text& text_;
  const ContinuationTerms& terms_;
  bool must_finish_;
  std::vector<std::uint32_t> next_;  // per choice: the next position that is not silent
  std::map<AttemptId, Exchange> exchanges_;
  std::vector<AttemptId> closed_;  // healthy exchanges, in this step
  unsigned possible_ = 0b111;      // identities that computed the text so far
  TimePoint now_;
  const HostTable* hosts_ = nullptr;  // in `check`
  std::optional<HostId> last_host_;   // that had the text alone
  TimePoint changed_;                 // when an exchange was opened or closed last
  TimePoint runs_since_;              // of the gateway
  std::uint32_t moves_ = 0;
  std::optional<Error> error_;  // that ended the request
  bool has_left_ = false;
  bool has_ending_ = false;
  bool has_finished_ = false;
  bool has_failed_ = false;
};

/// Prints the broken promise and the seed, and ends the program.
[[noreturn]] void report_violation(std::string_view what);

/// The schedule that this process runs.
struct RunningSchedule {
  std::uint64_t seed = 0;
  bool is_traced = false;
};
inline thread_local RunningSchedule running_schedule;

}  // namespace leasehold::gateway::simulation
