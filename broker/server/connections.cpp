#include "broker/server/connections.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/io_context.hpp>

#include "broker/server/worker_links.hpp"

namespace leasehold {
namespace {

using Watch = boost::asio::posix::stream_descriptor;

/// Out of descriptors: somebody must hang up first.
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

}  // namespace

Connections::Connections(boost::asio::io_context& io,
                         boost::asio::local::stream_protocol::acceptor acceptor, Handlers handlers)
    : io_(io), acceptor_(std::move(acceptor)), pause_(io), handlers_(std::move(handlers)) {}

void Connections::stop_accepting() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
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
  spdlog::warn("cannot accept connections, trying again soon pause_ms={}", kAcceptPause.count());
  pause_.expires_after(kAcceptPause);
  pause_.async_wait([this](const boost::system::error_code& error) {
    if (!error) accept_next();
  });
}

void Connections::add(control::Socket socket) {
  if (connections_.size() >= kMax) {
    spdlog::warn("too many connections, hung up on a newcomer limit={}", kMax);
    return;
  }
  const ConnectionId id{next_++};
  auto peer = control::Peer::create(
      std::move(socket), {.on_call =
                              [this, id](const std::string& method, control::Payload params,
                                         control::Responder respond) {
                                handlers_.on_call(id, method, std::move(params),
                                                  std::move(respond));
                              },
                          .on_notification =
                              [this, id](const std::string& method, control::Payload params) {
                                handlers_.on_notification(id, method, std::move(params));
                              },
                          .on_closed =
                              [this, id](const Error&) {
                                connections_.erase(id);
                                handlers_.on_closed(id);
                              }});
  connections_[id].peer = peer;
  peer->start();
}

std::shared_ptr<control::Peer> Connections::find(ConnectionId connection) const {
  const auto found = connections_.find(connection);
  return found == connections_.end() ? nullptr : found->second.peer;
}

Result<void> Connections::watch_holder(ConnectionId connection) {
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return fail(Errc::ConnectionLost, "the caller is gone");
  if (found->second.holder_watch) return {};
  UniqueFd pidfd = TRY(open_peer_pidfd(found->second.peer->credentials()));
  Watch& watch = found->second.holder_watch.emplace(io_, pidfd.release());
  watch.async_wait(Watch::wait_read, [this, connection](const boost::system::error_code& error) {
    if (!error) handlers_.on_holder_exit(connection);
  });
  return {};
}

}  // namespace leasehold
