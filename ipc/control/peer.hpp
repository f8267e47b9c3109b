/// One end of a control connection: JSON-RPC 2.0, one object per line, over a Unix stream socket.
///
/// A message that carries descriptors says `"fds": n` at its top level and is one sendmsg(2); the
/// reader takes them with recvmsg(2) and MSG_CMSG_CLOEXEC, treats truncation or a wrong count as
/// MalformedMessage, and closes what nobody claims. Both ends may call and notify.
///
/// Errors on the wire: `"error": {"code": <int>, "message": <detail>, "data": {"code": "<Errc>",
/// "retryable": bool}}`; JSON-RPC's own numbers for parse error, invalid request and unknown
/// method, -32000 for everything else. A line that cannot be parsed is answered with `id: null` and
/// the connection goes on, unless many come in a row; an over-long line is answered and the
/// connection is closed.
///
/// Lifetime: shared; stays alive while an operation is pending. Threads: everything on the one
/// thread that runs the io_context.
/// Source: JSON-RPC 2.0 specification; unix(7) SCM_RIGHTS, SO_PEERCRED.
#pragma once

#include <sys/types.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "common/unique_fd.hpp"

namespace leasehold::control {

using Json = nlohmann::json;
using Socket = boost::asio::local::stream_protocol::socket;

/// What a sender may make a receiver hold.
struct Limits {
  std::size_t max_line_bytes = 1 << 20;
  std::size_t max_depth = 32;
  std::size_t max_fds = 64;  ///< In one message that arrives; 0: takes none, may still send some.
  std::size_t max_queued_bytes = 8 << 20;  ///< Unsent output; a peer that does not read is dropped.
  std::size_t max_malformed_lines = 64;    ///< Lines in a row that are no message; then hung up on.
};

/// A peer takes lines of this weight together, then lets all others of its io_context have a turn.
inline constexpr std::size_t kTurnWeight = 16;

/// What reading a line costs, in short lines: a long one is parsed for as long as many of them.
constexpr std::size_t weight_of_line(std::size_t size_bytes) {
  return 1 + size_bytes / 1024;
}

struct Credentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

/// Parameters or a result, with descriptors that travel along.
struct Payload {
  Json body = Json::object();
  std::vector<UniqueFd> fds;
};

/// Answers one call, exactly once. Dropping it unanswered answers SystemError.
/// May be kept and used later; after the connection is gone it does nothing.
using Responder = std::move_only_function<void(Result<Payload>)>;

class Peer : public std::enable_shared_from_this<Peer> {
 public:
  struct Handlers {
    /// A call from the other end.
    std::function<void(const std::string& method, Payload params, Responder respond)> on_call;
    /// A notification from the other end.
    std::function<void(const std::string& method, Payload params)> on_notification;
    /// The connection is over; called once. Pending calls have been answered ConnectionLost.
    std::function<void(const Error& why)> on_closed;
    /// How long a line of this weight must wait before it is looked at; asked once per line, calls,
    /// answers and garbage alike. Until then nothing more is read, and the sender's socket fills.
    /// Empty: no line waits.
    std::function<Duration(std::size_t weight)> throttle = {};
  };
  using ReplyHandler = std::move_only_function<void(Result<Payload>)>;

  static std::shared_ptr<Peer> create(Socket socket, Handlers handlers, Limits limits = {});
  virtual ~Peer() = default;

  /// Begins reading. The handlers may be called from here on.
  virtual void start() = 0;

  /// Calls a method of the other end. The handler is called once: with the result, with the error
  /// the other end gave, TimedOut after `timeout` (zero: never), or ConnectionLost.
  virtual void call(const std::string& method, Payload params, ReplyHandler on_reply,
                    Duration timeout = Duration::zero()) = 0;

  virtual void notify(const std::string& method, Payload params) = 0;

  /// From now on the other end may send this many descriptors in one message, or none.
  virtual void set_max_fds(std::size_t at_most) = 0;

  /// Who is at the other end, read once at accept/connect (SO_PEERCRED).
  virtual const Credentials& credentials() const = 0;

  /// Closes after what is queued has been sent.
  virtual void close() = 0;
};

/// Connects to a listening Unix socket.
/// Errors: FileNotFound (no such path), PermissionDenied, ConnectionRefused (nobody listens).
Result<Socket> connect_to(boost::asio::io_context& io, const std::string& path);

/// Listens on `path` with the given mode. A stale socket file left by a dead process is replaced; a
/// live one is SocketInUse. Errors: SocketInUse, PermissionDenied, BadRequest (path too long).
Result<boost::asio::local::stream_protocol::acceptor> listen_on(boost::asio::io_context& io,
                                                                const std::string& path,
                                                                mode_t mode);

/// Goes on with a socket that listened on `path` before, kept open while nobody accepted.
/// Errors: BadRequest when it is no such socket.
Result<boost::asio::local::stream_protocol::acceptor> adopt_listener(boost::asio::io_context& io,
                                                                     UniqueFd kept,
                                                                     const std::string& path);

}  // namespace leasehold::control
