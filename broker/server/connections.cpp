#include "broker/server/connections.hpp"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>

#include "broker/server/connection_shares.hpp"
#include "broker/server/worker_links.hpp"
#include "common/process.hpp"

namespace leasehold {
namespace {

using Watch = boost::asio::posix::stream_descriptor;

/// Wait before accepting again after an error, typically because descriptors ran out.
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

bool is_operator(uid_t uid) {
  return uid == 0 || uid == ::geteuid();
}

bool lacks_descriptors(const boost::system::error_code& error) {
  return error == boost::system::errc::too_many_files_open ||
         error == boost::system::errc::too_many_files_open_in_system;
}

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
      worker_uids_(std::move(worker_uids)) {
  acceptor_.non_blocking(true);
}

void Connections::stop_accepting() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  accept_timer_.cancel();
}

void Connections::accept_next() {
  acceptor_.async_accept([this](const boost::system::error_code& error, control::Socket socket) {
    if (!acceptor_.is_open()) return;
    const bool accepted = !error || (lacks_descriptors(error) && accept_on_spare());
    if (!accepted) return accept_later();
    if (!error) add(std::move(socket));
    accept_next();
  });
}

/// Takes a waiting connection on a spare descriptor and closes it unless it is an operator's.
bool Connections::accept_on_spare() {
  if (!spares_.release_one()) return false;
  boost::system::error_code error;
  control::Socket socket(io_);
  acceptor_.accept(socket, error);
  if (!error) add(std::move(socket), true);
  spares_.refill();
  return !error;
}

void Connections::accept_later() {
  spdlog::warn("could not accept a connection retry_ms={}", kAcceptPause.count());
  accept_timer_.expires_after(kAcceptPause);
  accept_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) accept_next();
  });
}

bool Connections::has_room_for(uid_t uid) const {
  if (connections_.size() >= (may_use_reserve(uid) ? kMax : kMax - kReserved)) return false;
  const auto held = std::ranges::count_if(connections_, [uid](const auto& entry) {
    return entry.second.peer->credentials().uid == uid;
  });
  return is_operator(uid) || static_cast<std::size_t>(held) < kMaxOfOneUser;
}

bool Connections::may_use_reserve(uid_t uid) const {
  return is_operator(uid) || worker_uids_.contains(uid);
}

bool Connections::make_room_for(uid_t uid) {
  std::vector<HeldConnection> held;
  held.reserve(connections_.size());
  for (const auto& [id, connection] : connections_) {
    const uid_t owner = connection.peer->credentials().uid;
    held.push_back({id, owner, connection.holder_watch || may_use_reserve(owner)});
  }
  const auto closed = connection_to_close(held, uid);
  if (!closed) return false;
  ++refused_;
  close(*closed);
  return true;
}

/// Frees its place at once; its handler runs later.
void Connections::close(ConnectionId id) {
  const auto closed = connections_.extract(id);
  closed.mapped().peer->close();
}

void Connections::close_silent(TimePoint now) {
  std::vector<ConnectionId> silent;
  for (auto& [id, connection] : connections_) {
    if (connection.called) continue;
    if (!connection.silent_since) connection.silent_since = now;
    if (now - *connection.silent_since >= kFirstCallTimeout) silent.push_back(id);
  }
  for (const ConnectionId id : silent) close(id);
  refused_ += silent.size();
}

void Connections::add(control::Socket socket, bool operators_only) {
  const ConnectionId id{next_++};
  auto peer = control::Peer::create(
      std::move(socket),
      {.on_call =
           [this, id](const std::string& method, control::Payload params,
                      control::Responder respond) {
             connections_.at(id).called = true;
             handlers_.on_call(id, method, std::move(params), std::move(respond));
           },
       .on_notification =
           [this, id](const std::string& method, control::Payload params) {
             handlers_.on_notification(id, method, std::move(params));
           },
       .on_closed =
           [this, id](const Error&) {
             connections_.erase(id);
             spares_.refill();
             handlers_.on_closed(id);
           },
       .throttle =
           [this, id](std::size_t weight) {
             return handlers_.throttle(connections_.at(id).peer->credentials().uid, weight);
           }},
      kTakesNoDescriptors);
  const uid_t uid = peer->credentials().uid;
  const bool is_admitted = is_operator(uid) || !operators_only;
  const bool has_room = is_admitted && (has_room_for(uid) || make_room_for(uid));
  if (!has_room || !handlers_.admit_connection(uid)) {
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
