/// One end of a control connection: JSON-RPC 2.0, one object per line, over a Unix stream socket.
///
/// Both ends may call and notify. A message with n descriptors has `"fds": n` at its top level and
/// is sent with one sendmsg(2). The reader receives them with MSG_CMSG_CLOEXEC, treats truncation
/// or a wrong count as MalformedMessage, and closes descriptors that no handler takes.
///
/// Errors on the wire: `"error": {"code": <int>, "message": <detail>, "data": {"code": "<Errc>",
/// "retryable": bool, "scope": "tenant" | "engine" | "shared", "retry_after_ms": <int, where
/// known>}}`. The integer is JSON-RPC's own for a parse error, an invalid request and an unknown
/// method, and -32000 for all other errors. The peer answers a malformed line with its id, or null
/// if it has none, and keeps the connection, unless too many come in a row. A wrong number of
/// descriptors, lost descriptors or an oversized line is answered and ends the connection.
///
/// Lifetime: shared; stays alive while an operation is pending. Threads: the one thread that runs
/// the io_context.
/// Source: JSON-RPC 2.0 specification; unix(7) SCM_RIGHTS, SO_PEERCRED.
#pragma once

#include <sys/types.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.hpp"
#include "common/machine/unique_fd.hpp"
#include "ipc/control/transport/queue_meter.hpp"

namespace leasehold::control {

using Json = nlohmann::json;
using Socket = boost::asio::local::stream_protocol::socket;

/// Limits on what the other end can make this process hold. A peer sends messages within the
/// default limits, whatever limits it has for its own input.
struct Limits {
  std::size_t max_line_bytes = 1 << 20;
  std::string_view line_hint = "send shorter lines";  ///< What the sender of a longer line can do.
  std::size_t max_depth = 32;
  /// Objects, their members, arrays and texts in one line, because each costs time to free. Four
  /// numbers count as one.
  std::size_t max_values = 1 << 17;
  std::size_t max_fds = 64;                ///< In one received message; 0 allows none.
  std::size_t max_queued_bytes = 8 << 20;  ///< Unsent output; beyond it the connection ends.
  std::size_t max_malformed_lines = 64;    ///< In a row; beyond it the connection ends.
};

/// A peer processes lines of this total weight per turn, then lets the other peers of its
/// io_context run.
inline constexpr std::size_t kTurnWeight = 16;

/// A longer line may take so long to parse that other peers notice it: 1 MiB takes 10 ms and more.
inline constexpr std::size_t kShortLineBytes = 16 << 10;

/// Cost of parsing a line, in units of a short line.
constexpr std::size_t weight_of_line(std::size_t size_bytes) {
  return 1 + size_bytes / 1024;
}

struct Credentials {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
};

/// Parameters or a result, with the descriptors of the message.
struct Payload {
  Json body = Json::object();
  std::vector<UniqueFd> fds;
};

/// Answers one call, exactly once. Destroying an unused responder answers Draining. A responder may
/// be stored and used later; after the connection has ended it does nothing.
using Responder = std::move_only_function<void(Result<Payload>)>;

class Peer : public std::enable_shared_from_this<Peer> {
 public:
  struct Handlers {
    /// A call from the other end.
    std::function<void(const std::string& method, Payload params, Responder respond)> on_call;
    /// A notification from the other end.
    std::function<void(const std::string& method, Payload params)> on_notification;
    /// Called with a line without descriptors before it is parsed. Returns true if it handled the
    /// line, which the peer then does not parse. An empty function handles no line.
    std::function<bool(std::string_view line)> on_line = {};
    /// Called once when the connection has ended, after all pending calls got ConnectionLost.
    std::function<void(const Error& why)> on_closed;
    /// Returns how long a line of this weight waits before it is parsed. Called once per line, also
    /// for replies and malformed lines. The peer reads nothing while a line waits, so the sender's
    /// socket fills. An empty function means that no line waits.
    std::function<Duration(std::size_t weight)> throttle = {};
    /// Called on a peer with an input meter when input has to wait: for the rest of its line, for
    /// its throttle, or for the parser of long lines. The peer sends a returned error and ends the
    /// connection. An empty function means that all input may wait.
    std::function<std::optional<Error>()> refuse_input = {};
    /// Runs `work`, which parses a line beyond kShortLineBytes, on another thread; each peer has at
    /// most one such line at a time, and reads nothing meanwhile. An empty function means that the
    /// thread of the io_context parses all lines.
    std::function<void(std::move_only_function<void()> work)> parse_long = {};
    /// Called when all queued output has been sent, after some of it had to wait. May be empty.
    std::function<void()> on_drained = {};
  };
  using ReplyHandler = std::move_only_function<void(Result<Payload>)>;

  static std::shared_ptr<Peer> create(Socket socket, Handlers handlers, Limits limits = {});
  virtual ~Peer() = default;

  /// Starts reading. The peer may call the handlers from now on.
  virtual void start() = 0;

  /// Calls a method of the other end. The peer calls the handler once, with the result, the error
  /// of the reply, TimedOut after `timeout` (zero means no timeout), or ConnectionLost.
  virtual void call(const std::string& method, Payload params, ReplyHandler on_reply,
                    Duration timeout = Duration::zero()) = 0;

  virtual void notify(const std::string& method, Payload params) = 0;
  /// Sends a whole notification without descriptors, with its newline.
  virtual void notify_line(std::string line) = 0;

  /// The limits apply from now on, also to a line that has partly arrived.
  virtual void set_limits(const Limits& limits) = 0;

  /// Output that waits for the other end to read.
  virtual std::size_t queued_bytes() const = 0;
  /// From now on `meter` counts this peer's output, as Limits::max_queued_bytes does; null: no
  /// meter does.
  virtual void set_queue_meter(std::shared_ptr<QueueMeter> meter) = 0;
  /// From now on `meter` counts the input of this peer that has to wait; null: no meter does.
  virtual void set_input_meter(std::shared_ptr<QueueMeter> meter) = 0;

  /// Process and user of the other end, read once at accept or connect (SO_PEERCRED).
  virtual const Credentials& credentials() const = 0;

  /// Sends the queued lines, then closes the connection.
  virtual void close() = 0;
  /// Closes the connection at once. Queued lines are lost, so pending calls of the other end fail
  /// with ConnectionLost.
  virtual void close_now() = 0;
};

/// Connects to a listening Unix socket.
/// Errors: FileNotFound (no such path), PermissionDenied, ConnectionRefused (no process listens, or
/// the path is not a socket), BadRequest (path too long), SystemError.
Result<Socket> connect_to(boost::asio::io_context& io, const std::string& path);

/// Listens on `path` with the given mode. Replaces the socket file of a process that has exited.
/// Errors: SocketInUse (a process listens there, or the file is not a socket), PermissionDenied,
/// FileNotFound (no such directory), BadRequest (path too long), SystemError.
Result<boost::asio::local::stream_protocol::acceptor> listen_on(boost::asio::io_context& io,
                                                                const std::string& path,
                                                                mode_t mode);

/// Adopts a socket that already listens on `path`, kept open across a restart.
/// Errors: BadRequest when it does not listen on `path`.
Result<boost::asio::local::stream_protocol::acceptor> adopt_listener(boost::asio::io_context& io,
                                                                     UniqueFd kept,
                                                                     const std::string& path);

}  // namespace leasehold::control
