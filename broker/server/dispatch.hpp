/// From a method's name to the event it means: who may call it, what its parameters must be.
///
/// Roles: operator methods are for root and the broker's own user, worker methods for the users of
/// `--worker-uid`; everything else is decided by tenant policy and by who holds what.
/// Threads: the one of the io_context.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "broker/decide/event.hpp"
#include "ipc/control/peer.hpp"

namespace leasehold {

enum class Role : std::uint8_t { Anyone, Operator, Worker };

/// What a call needs from the server before it can become an event.
struct DispatchHooks {
  std::function<CallId(control::Responder)> wait_for_answer;
  std::function<Result<void>(ConnectionId)> watch_holder;
  std::function<std::uint64_t(ConnectionId)> start_ticks;
  std::function<Result<void>(ConnectionId, const wire::WorkerAttach&)> prepare_worker;
  /// Takes the memory that came with the message.
  std::function<Result<void>(ConnectionId, const wire::LeaseRedeliver&, std::vector<UniqueFd>)>
      take_memory;
  std::function<Result<control::Payload>(const std::string& method, const control::Json& params)>
      query;
  std::function<void(Event)> post;
  /// How many of so many reported events are taken.
  std::function<std::size_t(ConnectionId, std::size_t)> admit_events;
};

class Dispatch {
 public:
  Dispatch(DispatchHooks hooks, std::set<uid_t> worker_uids);

  struct Incoming {
    ConnectionId connection;
    control::Credentials credentials;
    control::Payload params;
    control::Responder respond;
  };
  /// Answers, or posts the event that will lead to an answer.
  void call(const std::string& method, Incoming incoming);

  /// `event.report` from a worker that waits for no answer; anything else is nobody's business.
  void notification(const std::string& method, ConnectionId connection,
                    const control::Credentials& credentials, const control::Payload& params);

 private:
  Result<void> answer_report(const std::string& method, Incoming& incoming);
  Result<void> take_report(ConnectionId connection, const control::Json& params);
  Result<void> check_role(Role role, const control::Credentials& credentials) const;
  template <class Message>
  Result<void> post_call(const std::string& method, Incoming& incoming);

  DispatchHooks hooks_;
  std::set<uid_t> worker_uids_;
};

}  // namespace leasehold
