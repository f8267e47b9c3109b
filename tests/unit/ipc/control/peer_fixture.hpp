/// A peer under test, connected to a raw socket or to another peer, all on one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ipc/control/transport/peer.hpp"

namespace leasehold::testing {

std::pair<control::Socket, UniqueFd> socket_and_raw_fd(boost::asio::io_context& io);
std::pair<control::Socket, control::Socket> two_sockets(boost::asio::io_context& io);

/// Runs handlers until `done`; fails the test after ten seconds without any.
void run_until(boost::asio::io_context& io, const std::function<bool()>& done);

/// The other end of a peer as a raw socket: the test controls every byte.
class RawSocket {
 public:
  RawSocket(boost::asio::io_context& io, UniqueFd fd) : io_(io), fd_(std::move(fd)) {}

  /// Sends with one sendmsg; the bytes must fit into the socket buffer.
  void send(std::string_view bytes, std::span<const int> fds = {});
  void send_line(const std::string& line, std::span<const int> fds = {}) { send(line + '\n', fds); }

  /// Sends without blocking; returns false when the socket buffer is full.
  bool try_send(std::string_view bytes);

  /// Sends until all bytes are sent or the peer closes; returns the number sent.
  std::size_t send_all(std::string_view bytes);

  /// The next line as JSON; nothing when the peer has closed.
  std::optional<nlohmann::json> read();
  nlohmann::json read_required();

  void hang_up() { fd_.reset(); }
  int fd() const { return fd_.get(); }

 private:
  boost::asio::io_context& io_;
  UniqueFd fd_;
  std::string arrived_;
};

/// Records what a peer's handlers receive. `on_call` answers calls, by default with their
/// parameters.
struct RecordedCalls {
  std::vector<std::string> calls;
  std::vector<std::pair<std::string, control::Payload>> notifications;
  std::vector<Error> closed;
  std::function<void(const std::string&, control::Payload, control::Responder)> on_call =
      [](const std::string&, control::Payload params, control::Responder respond) {
        respond(std::move(params));
      };
  /// How long a line of this weight waits; empty for a peer without a throttle.
  std::function<Duration(std::size_t)> throttle;
  std::vector<std::size_t> throttled;  ///< The weights that were asked for.
  control::Peer::Handlers handlers();
};

/// A peer connected to a raw socket.
struct PeerFixture {
  explicit PeerFixture(control::Limits limits = {},
                       std::function<Duration(std::size_t)> throttle = {});
  void run_until_closed();

  /// Notifies an end that does not read until the peer has closed, and checks that it does so
  /// because its queue is full, after fewer than 300 notifications.
  void check_queue_fills(const std::function<control::Payload()>& next);

  boost::asio::io_context io;
  RecordedCalls seen;
  std::shared_ptr<control::Peer> peer;
  std::optional<RawSocket> other;
};

/// Two connected peers.
struct PeerPairFixture {
  PeerPairFixture();
  ~PeerPairFixture();

  boost::asio::io_context io;
  RecordedCalls left_seen;
  RecordedCalls right_seen;
  std::shared_ptr<control::Peer> left;
  std::shared_ptr<control::Peer> right;

  /// Calls `right` from `left` and returns the reply.
  Result<control::Payload> ask(const std::string& method, control::Payload params = {});
};

/// Number of descriptors that this process has open.
std::size_t open_fd_count();

/// A memfd that contains the text.
UniqueFd memfd_with(const std::string& text);
std::string contents(const UniqueFd& fd);

}  // namespace leasehold::testing
