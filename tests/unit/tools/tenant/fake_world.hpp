/// A broker and a worker in the test's own process, on real sockets, doing what a script says.
#pragma once

#include <boost/asio/io_context.hpp>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ipc/control/messages.hpp"
#include "ipc/control/peer.hpp"
#include "tests/unit/tools/tenant/manual_timers.hpp"
#include "tools/client/session.hpp"

namespace leasehold::tenant {

/// Listens, answers each call with what was prepared for its method, and remembers the calls.
class FakeServer {
 public:
  FakeServer(boost::asio::io_context& io, std::string path);

  /// The answers of a method in order; the last is given again and again.
  std::map<std::string, std::deque<Result<wire::Json>>> answers;
  /// Called after a call was answered.
  std::function<void(const std::string& method, const wire::Json& params)> after_answer;

  std::vector<wire::Json> calls(const std::string& method) const;
  void notify(const std::string& method, const wire::Json& params);
  /// Closes every connection; goes on listening.
  void drop_connections();
  /// Stops listening as well.
  void vanish();

 private:
  void accept();
  Result<control::Payload> answer(const std::string& method, const wire::Json& params);

  boost::asio::io_context& io_;
  std::string path_;
  boost::asio::local::stream_protocol::acceptor acceptor_;
  std::vector<std::shared_ptr<control::Peer>> peers_;
  std::vector<std::pair<std::string, wire::Json>> calls_;
};

/// Both servers, a session between them, and everything it reported.
///
/// Unless a test says otherwise the broker grants leases 1.1, 1.2 … of 3 s and the worker accepts
/// what it is sent.
struct World {
  World();
  ~World();

  std::shared_ptr<TenantSession> start(bool rebind = false);
  /// Runs the loop until `wanted`; fails the test when nothing happens for long.
  void run_until(const std::function<bool()>& wanted);
  /// Runs what is ready now.
  void settle();

  void emit(std::uint32_t first_position, int count);
  void complete(const std::string& reason);
  /// The worker's word that this lease was revoked by the operator.
  void complete_revoked(LeaseId lease);

  template <class Kind>
  std::vector<Kind> reported() const {
    std::vector<Kind> found;
    for (const SessionEvent& event : events) {
      if (const auto* kind = std::get_if<Kind>(&event)) found.push_back(*kind);
    }
    return found;
  }
  /// Waits for the session's end.
  Ended end();

  std::filesystem::path directory;
  boost::asio::io_context io{1};
  ManualTimers timers;
  FakeServer broker, worker;
  wire::Generate request;  ///< What the session asks for.
  std::vector<SessionEvent> events;
  std::shared_ptr<TenantSession> session;
  std::uint32_t sent = 0;  ///< Tokens the worker sent.
};

/// What the worker's model would say at a position.
std::int32_t token_at(std::uint32_t position);

}  // namespace leasehold::tenant
