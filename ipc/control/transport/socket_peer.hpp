/// The only implementation of Peer, over a connected Unix socket. Internal to peer.cpp; other code
/// uses peer.hpp.
///
/// Threads: the io_context's. Ownership: shared by the owners of the Peer and by its pending
/// operations.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ipc/control/transport/envelope.hpp"
#include "ipc/control/transport/fd_socket.hpp"
#include "ipc/control/transport/inbox.hpp"
#include "ipc/control/transport/outbox.hpp"
#include "ipc/control/transport/peer.hpp"
#include "ipc/control/transport/pending_calls.hpp"

namespace leasehold::control {

/// Methods never call a user's handler directly; only the io_context does. So a caller that
/// iterates over its peers cannot have one destroyed during the iteration.
class SocketPeer final : public Peer {
 public:
  SocketPeer(Socket socket, Handlers handlers, Limits limits);

  void start() override;
  void call(const std::string& method, Payload params, ReplyHandler on_reply,
            Duration timeout) override;
  void notify(const std::string& method, Payload params) override;
  void notify_line(std::string line) override;
  void set_limits(const Limits& limits) override;
  std::size_t queued_bytes() const override { return outbox_.cost_bytes(); }
  void set_queue_meter(std::shared_ptr<QueueMeter> meter) override {
    outbox_.set_meter(std::move(meter));
  }
  void set_input_meter(std::shared_ptr<QueueMeter> meter) override {
    inbox_.set_meter(std::move(meter));
  }
  const Credentials& credentials() const override { return credentials_; }
  void close() override;
  void close_now() override;
  /// Sends what a batch of this thread has collected.
  void send_batched();

 private:
  enum class State { Open, Closing, Closed };  // Closing: only sends queued lines
  class Answer;

  std::shared_ptr<SocketPeer> self();
  template <class Handler>
  void post(Handler handler);

  void wait_readable();
  void read_some();
  void process_lines();
  void read_more();
  void process_after(Duration wait, Line line);
  bool refuse_input(std::size_t waiting_line_bytes);
  bool parse(Line line);
  void take(Envelope envelope, std::vector<UniqueFd> fds);
  void handle(IncomingCall call, std::vector<UniqueFd> fds);
  void handle(IncomingNotification notification, std::vector<UniqueFd> fds);
  void handle(IncomingReply reply, std::vector<UniqueFd> fds);
  void handle(RejectedMessage refusal, std::vector<UniqueFd> fds);

  void answer(const Json& id, Result<Payload> result);
  void fail_later(ReplyHandler on_reply, Error error);
  std::unique_ptr<boost::asio::steady_timer> start_timeout(std::uint64_t id, Duration timeout);

  void send_notification(std::string line, Payload params);
  void send(std::string line, std::vector<UniqueFd> fds);
  bool joins_batch();
  void flush();
  void write_failed(Error why);
  void refuse_and_close(Error why, const Json& id = nullptr);
  void begin_close(Error why);
  void finish(Error why);
  void deliver_close(const Error& why);

  Socket socket_;
  Handlers handlers_;
  Credentials credentials_;
  State state_ = State::Open;
  bool started_ = false;
  bool waits_writable_ = false;
  bool write_broken_ = false;
  Error why_{Errc::ConnectionLost, ""};  // while Closing, or once write_broken_
  int drain_reads_ = 0;
  std::size_t malformed_lines_ = 0;  // in a row
  boost::asio::steady_timer timer_;  ///< While Open, ends the pause of a line; then, the linger.
  Inbox inbox_;
  Outbox outbox_;
  std::vector<std::uint64_t> control_;
  PendingCalls calls_;
};

/// The responder of one call. After it was called or moved from, it has no peer, and its destructor
/// sends no answer.
class SocketPeer::Answer {
 public:
  Answer(std::weak_ptr<SocketPeer> peer, Json id) : peer_(std::move(peer)), id_(std::move(id)) {}
  Answer(Answer&&) noexcept = default;
  Answer& operator=(Answer&&) = delete;
  ~Answer() {
    (*this)(std::unexpected(Error{Errc::Draining, "the call got no reply: that end is stopping",
                                  FailureScope::Engine}));
  }
  void operator()(Result<Payload> result) {
    if (const auto peer = std::exchange(peer_, {}).lock()) peer->answer(id_, std::move(result));
  }

 private:
  std::weak_ptr<SocketPeer> peer_;
  Json id_;
};

}  // namespace leasehold::control
