#include "broker/server/connections.hpp"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>

#include "broker/server/worker_links.hpp"
#include "common/process.hpp"

namespace leasehold {
namespace {

using Watch = boost::asio::posix::stream_descriptor;

/// Wait before accepting again after an error, typically because descriptors ran out.
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

/// The broker accepts no descriptors from callers, so that they cannot use up its descriptor limit.
/// A connection that sends one is closed.
constexpr control::Limits kTakesNoDescriptors{.max_fds = 0};

}  // namespace

Connections::Connections(boost::asio::io_context& io,
                         boost::asio::local::stream_protocol::acceptor acceptor, Handlers handlers,
                         std::set<uid_t> worker_uids)
    : io_(io),
      acceptor_(std::move(acceptor)),
      accept_timer_(io),
      handlers_(std::move(handlers)),
      worker_uids_(std::move(worker_uids)) {}

void Connections::stop_accepting() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  accept_timer_.cancel();
}

void Connections::accept_next() {
  acceptor_.async_accept([this](const boost::system::error_code& error, control::Socket socket) {
    if (!acceptor_.is_open()) return;
    if (error) return accept_later();
    add(std::move(socket));
    accept_next();
  });
}

void Connections::accept_later() {
  spdlog::warn("could not accept a connection retry_ms={}", kAcceptPause.count());
  accept_timer_.expires_after(kAcceptPause);
  accept_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) accept_next();
  });
}

bool Connections::has_room_for(uid_t uid) const {
  const bool is_operator = uid == 0 || uid == ::geteuid();
  const bool may_use_reserve = is_operator || worker_uids_.contains(uid);
  if (connections_.size() >= (may_use_reserve ? kMax : kMax - kReserved)) return false;
  const auto held = std::ranges::count_if(connections_, [uid](const auto& entry) {
    return entry.second.peer->credentials().uid == uid;
  });
  return is_operator || static_cast<std::size_t>(held) < kMaxOfOneUser;
}

void Connections::add(control::Socket socket) {
  const ConnectionId id{next_++};
  auto peer = control::Peer::create(
      std::move(socket),
      {.on_call =
           [this, id](const std::string& method, control::Payload params,
                      control::Responder respond) {
             handlers_.on_call(id, method, std::move(params), std::move(respond));
           },
       .on_notification =
           [this, id](const std::string& method, control::Payload params) {
             handlers_.on_notification(id, method, std::move(params));
           },
       .on_closed =
           [this, id](const Error&) {
             connections_.erase(id);
             handlers_.on_closed(id);
           },
       .throttle =
           [this, id](std::size_t weight) {
             return handlers_.throttle(connections_.at(id).peer->credentials().uid, weight);
           }},
      kTakesNoDescriptors);
  const uid_t uid = peer->credentials().uid;
  if (!has_room_for(uid) || !handlers_.admit_connection(uid)) {
    ++refused_;
    return;
  }
  connections_[id].peer = peer;
  peer->start();
}

std::shared_ptr<control::Peer> Connections::find(ConnectionId connection) const {
  const auto found = connections_.find(connection);
  return found == connections_.end() ? nullptr : found->second.peer;
}

std::uint64_t Connections::start_ticks(ConnectionId connection) {
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return 0;
  auto& known = found->second.start_ticks;
  if (!known) known = start_ticks_of(found->second.peer->credentials().pid).value_or(0);
  return *known;
}

Result<void> Connections::watch_holder(ConnectionId connection) {
  const auto found = connections_.find(connection);
  if (found == connections_.end()) {
    return fail(Errc::ConnectionLost, "the caller has closed its connection");
  }
  if (found->second.holder_watch) return {};
  UniqueFd pidfd = TRY(open_peer_pidfd(found->second.peer->credentials()));
  Watch& watch = found->second.holder_watch.emplace(io_, pidfd.release());
  watch.async_wait(Watch::wait_read, [this, connection](const boost::system::error_code& error) {
    if (!error) handlers_.on_holder_exit(connection);
  });
  return {};
}

}  // namespace leasehold
