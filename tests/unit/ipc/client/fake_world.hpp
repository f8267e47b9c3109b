/// A scripted broker and worker in the test process, on real sockets.
#pragma once

#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ipc/client/lease_holder.hpp"
#include "ipc/client/session.hpp"
#include "ipc/control/messages.hpp"
#include "ipc/control/transport/peer.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/ipc/client/manual_timers.hpp"

namespace leasehold::client {

/// Listens, answers each call with the prepared reply of its method, and records the calls.
class FakeServer {
 public:
  FakeServer(boost::asio::io_context& io, std::string path);

  /// Replies by method, in order; the last one repeats.
  std::map<std::string, std::deque<Result<wire::Json>>> answers;
  /// Calls of this method wait for answer_held().
  std::string held;
  void answer_held();
  /// Called after each reply.
  std::function<void(const std::string& method, const wire::Json& params)> after_answer;

  std::vector<wire::Json> calls(const std::string& method) const;
  /// Connections that neither end has closed.
  std::size_t open_connections() const { return open_connections_; }
  void notify(const std::string& method, const wire::Json& params);
  /// Notifies the connection that submitted the request of the message last.
  void notify_submitter(const std::string& method, const wire::Json& params);
  /// Closes every connection, but keeps listening.
  void drop_connections();
  /// Closes every connection and stops listening.
  void vanish();

 private:
  void accept();
  Result<control::Payload> answer(const std::string& method, const wire::Json& params);

  std::vector<std::move_only_function<void()>> waiting_;
  boost::asio::io_context& io_;
  std::string path_;
  boost::asio::local::stream_protocol::acceptor acceptor_;
  std::vector<std::shared_ptr<control::Peer>> peers_;
  std::size_t open_connections_ = 0;
  std::vector<std::pair<std::string, wire::Json>> calls_;
  std::map<std::string, std::size_t> submitters_;  // of peers_, by request
};

/// Both servers, a session that uses them, and the events it reported.
///
/// By default the broker grants leases 1.1, 1.2 … of 3 s, and the worker accepts every request.
struct World {
  World();

  std::shared_ptr<TenantSession> start(bool rebind = false);
  /// Starts a session and runs until the worker has accepted the request.
  void stream(bool rebind = false);
  /// Runs the loop until `wanted`; fails the test when nothing more happens.
  void run_until(const std::function<bool()>& wanted);
  /// Runs the handlers that are ready.
  void settle();

  void emit(std::uint32_t first_position, int count);
  /// Emits the first `count` tokens and waits for them.
  void deliver(int count);
  void complete(const std::string& reason);
  /// Ends the request at the worker: the operator revoked `lease`.
  void complete_revoked(LeaseId lease);
  /// The same, and waits until the session has reported it.
  void revoke(LeaseId lease);
  /// Completes the request; true if the session ends without an error.
  bool completes();

  template <class Kind>
  std::vector<Kind> reported() const {
    std::vector<Kind> found;
    for (const SessionEvent& event : events) {
      if (const auto* kind = std::get_if<Kind>(&event)) found.push_back(*kind);
    }
    return found;
  }
  /// Waits for the end of the session.
  Ended end();

  TemporaryDirectory files = TemporaryDirectory::create("test").value();
  std::filesystem::path directory = files.path();
  boost::asio::io_context io{1};
  std::chrono::seconds longest_work{0};  ///< Of threads that post to the loop.
  ManualTimers timers;
  FakeServer broker, worker;
  wire::RequestSubmit request;  ///< The request of the session.
  bool any_arithmetic = false;
  bool moves = true;                          ///< SessionConfig::moves.
  std::optional<std::string> named_worker;    ///< SessionConfig::worker.
  std::optional<ModelName> model;             ///< SessionConfig::model.
  std::optional<TextIdentity> text_identity;  ///< SessionConfig::text_identity.
  std::shared_ptr<LeaseHolder> holder;        ///< SessionConfig::lease.
  std::vector<SessionEvent> events;
  std::shared_ptr<TenantSession> session;
  std::uint32_t sent = 0;  ///< Tokens the worker sent.
};

/// The token that the worker sends at a position.
std::int32_t token_at(std::uint32_t position);

}  // namespace leasehold::client
