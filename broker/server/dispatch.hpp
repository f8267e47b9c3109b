/// Maps a method name to its role check, its parameters and the event it posts.
///
/// Roles: root and the broker's user may call operator methods; the users in `--worker-uid` may
/// call worker methods; the users in `--observer-uid` may only query state, except keys and memory.
/// Tenant policy and lease ownership decide about all other methods. Threads: the io_context's
/// thread.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "broker/decide/event.hpp"
#include "ipc/control/messages/waits/lease_wait.hpp"
#include "ipc/control/transport/peer.hpp"

namespace leasehold {

struct Query;  // broker/server/lists.hpp

enum class Role : std::uint8_t { Anyone, Operator, Worker, Observer };

/// The users with the role Worker or Observer.
struct RoleUsers {
  std::set<uid_t> workers;
  std::set<uid_t> observers;
};

/// Functions of the server that a call needs before it becomes an event.
struct DispatchHooks {
  std::function<CallId(control::Responder)> wait_for_answer;
  std::function<Result<void>(ConnectionId)> watch_holder;
  std::function<std::uint64_t(ConnectionId)> start_ticks;
  std::function<Result<void>(ConnectionId, const wire::WorkerAttach&)> prepare_worker;
  /// Takes the memory descriptors of the message.
  std::function<Result<void>(ConnectionId, const wire::LeaseRedeliver&, std::vector<UniqueFd>)>
      take_memory;
  /// Answers `spill.open` after the disk thread has created the file.
  std::function<void(ConnectionId, control::Responder)> open_spill;
  /// Answers the query, perhaps later.
  std::function<void(const Query&, const control::Json& params, control::Responder)> query;
  /// See HostMemory::count_touched.
  std::function<void(std::move_only_function<void()>)> count_touched;
  /// Passes the call to the worker of this name. See PassedCalls::pass.
  std::function<void(const std::string& worker, const std::string& method,
                     const control::Json& params, std::function<void(Result<control::Payload>)>)>
      pass_to_worker;
  /// See LeaseWaits::add.
  std::function<Result<void>(ConnectionId, wire::LeaseWait, control::Responder&)> wait_for_leases;
  std::function<void(Event)> post;
  /// Number of reported events that the rate limit admits.
  std::function<std::size_t(ConnectionId, std::size_t)> admit_events;
};

class Dispatch {
 public:
  Dispatch(DispatchHooks hooks, RoleUsers users);

  /// Every method that `call` knows.
  static std::vector<std::string> methods();

  struct Incoming {
    ConnectionId connection;
    control::Credentials credentials;
    control::Payload params;
    control::Responder respond;
  };
  /// Answers the call, or posts the event that leads to its answer.
  void call(const std::string& method, Incoming incoming);

  /// Accepts a worker's reports about events, usage, served requests, its drain and its weights.
  /// Ignores every other notification.
  void notification(const std::string& method, ConnectionId connection,
                    const control::Credentials& credentials, const control::Payload& params);

 private:
  Result<void> open_spill(const std::string& method, Incoming& incoming);
  Result<void> wait_for_leases(const std::string& method, Incoming& incoming);
  template <class Message>
  Result<void> pass_to_worker(const std::string& method, Incoming& incoming);
  Result<void> answer_report(const std::string& method, Incoming& incoming);
  Result<void> take_report(ConnectionId connection, const control::Json& params);
  template <class Message, class Report>
  Result<void> post_report(ConnectionId connection, const control::Json& params);
  Result<void> check_role(Role role, const control::Credentials& credentials) const;
  template <class Message>
  Result<void> post_call(const std::string& method, Incoming& incoming);

  using Handler = Result<void> (Dispatch::*)(const std::string&, Incoming&);
  struct Row {
    Role role;
    Handler handler;
    /// If set, answers the call without an event and without the handler.
    const Query* query = nullptr;
  };
  using Rows = std::map<std::string, Row, std::less<>>;
  static Rows with_queries(Rows rows);
  static const Rows& rows();
  bool is_observer(uid_t uid) const;

  DispatchHooks hooks_;
  RoleUsers users_;
};

}  // namespace leasehold
