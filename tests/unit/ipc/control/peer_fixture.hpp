/// A peer under test with a bare socket, or another peer, at its other end, all on one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ipc/control/peer.hpp"

namespace leasehold::testing {

std::pair<control::Socket, UniqueFd> socket_and_raw_fd(boost::asio::io_context& io);
std::pair<control::Socket, control::Socket> two_sockets(boost::asio::io_context& io);

/// Runs handlers until `done`; fails the test when nothing happens for ten seconds.
void run_until(boost::asio::io_context& io, const std::function<bool()>& done);

/// The other end of a peer, in the hands of the test: says whatever the test wants, byte by byte.
class RawSocket {
 public:
  RawSocket(boost::asio::io_context& io, UniqueFd fd) : io_(io), fd_(std::move(fd)) {}

  /// One sendmsg; the bytes must fit into the socket.
  void send(std::string_view bytes, std::span<const int> fds = {});

  /// Sends what the kernel takes right now; false when that is nothing.
  bool try_send(std::string_view bytes);

  /// Sends until all is taken or the peer hangs up; how many bytes were taken.
  std::size_t send_all(std::string_view bytes);

  /// The next line as JSON; nothing when the peer hung up.
  std::optional<nlohmann::json> read();
  nlohmann::json read_required();

  void hang_up() { fd_.reset(); }
  int fd() const { return fd_.get(); }

 private:
  boost::asio::io_context& io_;
  UniqueFd fd_;
  std::string arrived_;
};

/// What a peer's handlers saw. Calls are answered by `on_call`, by default with their parameters.
struct RecordedCalls {
  std::vector<std::string> calls;
  std::vector<std::pair<std::string, control::Payload>> notifications;
  std::vector<Error> closed;
  std::function<void(const std::string&, control::Payload, control::Responder)> on_call =
      [](const std::string&, control::Payload params, control::Responder respond) {
        respond(std::move(params));
      };
  control::Peer::Handlers handlers();
};

/// A peer with a bare end.
struct PeerFixture {
  explicit PeerFixture(control::Limits limits = {});
  void run_until_closed();

  boost::asio::io_context io;
  RecordedCalls seen;
  std::shared_ptr<control::Peer> peer;
  std::optional<RawSocket> other;
};

/// Two peers that talk to each other.
struct PeerPairFixture {
  explicit PeerPairFixture(control::Limits limits = {});
  ~PeerPairFixture();

  boost::asio::io_context io;
  RecordedCalls left_seen;
  RecordedCalls right_seen;
  std::shared_ptr<control::Peer> left;
  std::shared_ptr<control::Peer> right;

  /// The answer of `right` to a call of `left`.
  Result<control::Payload> ask(const std::string& method, control::Payload params = {});
};

/// Descriptors this process has open.
std::size_t open_fd_count();

/// A memory object holding this text.
UniqueFd memfd_with(const std::string& text);
std::string contents(const UniqueFd& fd);

}  // namespace leasehold::testing
