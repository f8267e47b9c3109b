#include "ipc/control/transport/socket_peer.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/post.hpp>
#include <utility>

#include "common/machine/close_on_exec.hpp"
#include "common/machine/confined.hpp"
#include "ipc/control/transport/send_batch.hpp"

namespace leasehold::control {
namespace {

constexpr std::size_t kReadBytes = 64 * 1024;
constexpr std::size_t kMaxBatchedBytes = 64 * 1024;
constexpr int kMaxDrainReads = 64;
/// The default limits of a receiver.
constexpr std::size_t kMaxSentFds = Limits{}.max_fds;
constexpr std::size_t kMaxSentLineBytes = Limits{}.max_line_bytes;
/// How long a closing connection waits for the other end to read the queued lines.
constexpr auto kLinger = std::chrono::seconds(2);

Credentials credentials_of(int socket) {
  ucred other{};
  socklen_t size = sizeof(other);
  // Connected sockets always have credentials. After a failure report uid -1, because 0 is root.
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) != 0)
    return {.pid = 0, .uid = static_cast<uid_t>(-1), .gid = static_cast<gid_t>(-1)};
  return {.pid = other.pid, .uid = other.uid, .gid = other.gid};
}

bool fits(const std::string& line, const Payload& payload) {
  return line.size() <= kMaxSentLineBytes && payload.fds.size() <= kMaxSentFds;
}

Error too_large(const std::string& line, const Payload& payload) {
  return {Errc::MessageTooLarge,
          fmt::format("the message has {} bytes and {} descriptors; at most {} bytes and {} "
                      "descriptors fit into one",
                      line.size(), payload.fds.size(), kMaxSentLineBytes, kMaxSentFds)};
}

}  // namespace

SocketPeer::SocketPeer(Socket socket, Handlers handlers, Limits limits)
    : socket_(std::move(socket)),
      handlers_(std::move(handlers)),
      credentials_(credentials_of(socket_.native_handle())),
      timer_(socket_.get_executor()),
      inbox_(limits),
      control_(control_buffer(limits.max_fds)) {
  set_close_on_exec(socket_.native_handle());
}

std::shared_ptr<SocketPeer> SocketPeer::self() {
  return std::static_pointer_cast<SocketPeer>(shared_from_this());
}

template <class Handler>
void SocketPeer::post(Handler handler) {
  boost::asio::post(socket_.get_executor(), std::move(handler));
}

// ---------------------------------------------------------------- receive

void SocketPeer::start() {
  if (std::exchange(started_, true) || state_ != State::Open) return;
  wait_readable();
}

void SocketPeer::wait_readable() {
  socket_.async_wait(Socket::wait_read, [me = self()](const boost::system::error_code&) {
    // If the wait failed, the read fails too.
    if (me->state_ == State::Open) me->read_some();
  });
}

void SocketPeer::read_some() {
  std::array<char, kReadBytes> bytes;  // left uninitialised; recvmsg returns how much is valid
  auto got = receive_some(socket_.native_handle(), bytes, control_);
  if (!got) return finish(got.error());
  if (got->would_block) return write_broken_ ? finish(why_) : wait_readable();
  if (got->size_bytes == 0)
    return finish({Errc::ConnectionLost, "the other end closed the connection"});
  if (got->fds_lost) {
    return refuse_and_close(
        {Errc::MalformedMessage, fmt::format("descriptors were lost: more than {} arrived, or this "
                                             "process has reached its limit of open files",
                                             inbox_.limits().max_fds)});
  }
  const auto added = catch_request_errors([&]() -> Result<void> {
    inbox_.add({bytes.data(), got->size_bytes}, std::move(got->fds));
    return {};
  });
  if (!added) return finish(added.error());
  process_lines();
}

/// One turn: processes only a few lines, then lets the other peers of this io_context run.
void SocketPeer::process_lines() {
  for (std::size_t weight = 0; state_ == State::Open && weight < kTurnWeight;) {
    auto line = catch_request_errors([&] { return inbox_.next(); });
    if (!line) return refuse_and_close(line.error(), id_of_partial_line(inbox_.partial_line()));
    if (!*line) return read_more();
    const std::size_t its_weight = weight_of_line((*line)->text.size());
    weight += its_weight;
    const Duration wait = handlers_.throttle ? handlers_.throttle(its_weight) : Duration::zero();
    if (wait > Duration::zero()) return process_after(wait, **std::move(line));
    if (!parse(**std::move(line))) return;
  }
  if (state_ != State::Open) return;
  post([me = self()] {
    if (me->state_ == State::Open) me->process_lines();
  });
}

/// Called when all arrived lines are processed. If the other end no longer reads, still receives
/// what it has already sent.
void SocketPeer::read_more() {
  if (refuse_input(0)) return;
  if (!write_broken_) return wait_readable();
  if (++drain_reads_ > kMaxDrainReads) return finish(why_);
  post([me = self()] {
    if (me->state_ == State::Open) me->read_some();
  });
}

/// If the owner of the connection may not make this process hold more input, closes the connection
/// and returns true.
bool SocketPeer::refuse_input(std::size_t waiting_line_bytes) {
  if (!inbox_.charge(waiting_line_bytes) || !handlers_.refuse_input) return false;
  auto why = handlers_.refuse_input();
  if (!why) return false;
  refuse_and_close(*std::move(why));
  return true;
}

void SocketPeer::process_after(Duration wait, Line line) {
  if (refuse_input(line.text.capacity())) return;
  timer_.expires_after(wait);
  timer_.async_wait(
      [me = self(), line = std::move(line)](const boost::system::error_code& error) mutable {
        if (error || me->state_ != State::Open) return;
        if (me->parse(std::move(line))) me->process_lines();
      });
}

/// Returns false if another thread parses the line; the peer then continues when that thread is
/// done.
bool SocketPeer::parse(Line line) {
  if (handlers_.on_line && line.fds.empty() && handlers_.on_line(line.text)) {
    malformed_lines_ = 0;
    return true;
  }
  if (!handlers_.parse_long || line.text.size() <= kShortLineBytes) {
    take(parse_line(line.text, inbox_.limits()), std::move(line.fds));
    return true;
  }
  if (refuse_input(line.text.capacity())) return false;
  // The work holds the peer weakly: only this thread may destroy the peer or use its members.
  handlers_.parse_long([weak = weak_from_this(), limits = inbox_.limits(),
                        executor = socket_.get_executor(), line = std::move(line)]() mutable {
    Envelope envelope = parse_line(line.text, limits);
    boost::asio::post(executor, [weak = std::move(weak), envelope = std::move(envelope),
                                 fds = std::move(line.fds)]() mutable {
      const auto me = std::static_pointer_cast<SocketPeer>(weak.lock());
      if (!me || me->state_ != State::Open) return;
      me->take(std::move(envelope), std::move(fds));
      me->process_lines();
    });
  });
  return false;
}

void SocketPeer::take(Envelope envelope, std::vector<UniqueFd> fds) {
  if (envelope.fds != fds.size()) {
    return refuse_and_close(
        {Errc::MalformedMessage,
         fmt::format("received {} descriptors with a line that declares another number; send each "
                     "message with descriptors in one sendmsg, with \"fds\": n",
                     fds.size())});
  }
  const bool is_malformed = std::holds_alternative<RejectedMessage>(envelope.content);
  malformed_lines_ = is_malformed ? malformed_lines_ + 1 : 0;
  std::visit([&](auto& content) { handle(std::move(content), std::move(fds)); }, envelope.content);
}

void SocketPeer::handle(IncomingCall call, std::vector<UniqueFd> fds) {
  if (!handlers_.on_call) {
    return answer(call.id,
                  fail(Errc::UnknownMethod,
                       fmt::format("this end serves no calls; it does not know {}", call.method)));
  }
  handlers_.on_call(call.method, Payload{std::move(call.params), std::move(fds)},
                    Answer(self(), std::move(call.id)));
}

void SocketPeer::handle(IncomingNotification notification, std::vector<UniqueFd> fds) {
  if (!handlers_.on_notification) return;
  handlers_.on_notification(notification.method,
                            Payload{std::move(notification.params), std::move(fds)});
}

void SocketPeer::handle(IncomingReply reply, std::vector<UniqueFd> fds) {
  // A reply with an unknown id belongs to a call that timed out or was never made. The descriptors
  // of the reply close here.
  if (!reply.id.is_number_unsigned()) return;
  const auto id = reply.id.get<std::uint64_t>();
  if (!reply.result) return calls_.complete(id, std::unexpected(std::move(reply.result).error()));
  calls_.complete(id, Payload{*std::move(reply.result), std::move(fds)});
}

void SocketPeer::handle(RejectedMessage refusal, std::vector<UniqueFd>) {
  send(rejection_line(refusal), {});
  const std::size_t most = inbox_.limits().max_malformed_lines;
  if (malformed_lines_ <= most) return;
  refuse_and_close({Errc::MalformedMessage,
                    fmt::format("more than {} malformed lines in a row; send JSON-RPC 2.0, "
                                "one object per line",
                                most)});
}

void SocketPeer::set_limits(const Limits& limits) {
  inbox_.set_limits(limits);
  control_ = control_buffer(limits.max_fds);
}

// ---------------------------------------------------------------- calls

void SocketPeer::call(const std::string& method, Payload params, ReplyHandler on_reply,
                      Duration timeout) {
  if (state_ != State::Open)
    return fail_later(std::move(on_reply), {Errc::ConnectionLost, "the connection is closed"});
  const std::uint64_t id = calls_.next_id();
  std::string line = call_line(id, method, params);
  if (!fits(line, params)) return fail_later(std::move(on_reply), too_large(line, params));
  calls_.add(id, std::move(on_reply),
             timeout == Duration::zero() ? nullptr : start_timeout(id, timeout));
  send(std::move(line), std::move(params.fds));
}

void SocketPeer::fail_later(ReplyHandler on_reply, Error error) {
  post([handler = std::move(on_reply), why = std::move(error)]() mutable {
    handler(std::unexpected(std::move(why)));
  });
}

std::unique_ptr<boost::asio::steady_timer> SocketPeer::start_timeout(std::uint64_t id,
                                                                     Duration timeout) {
  auto timer = std::make_unique<boost::asio::steady_timer>(socket_.get_executor(), timeout);
  timer->async_wait([me = self(), id, timeout](const boost::system::error_code& error) {
    if (error) return;
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
    me->calls_.complete(id, fail(Errc::TimedOut, fmt::format("no reply within {} ms", ms)));
  });
  return timer;
}

void SocketPeer::answer(const Json& id, Result<Payload> result) {
  if (state_ != State::Open) return;
  if (!result) return send(error_line(id, result.error()), {});
  std::string line = result_line(id, *result);
  if (!fits(line, *result)) return send(error_line(id, too_large(line, *result)), {});
  send(std::move(line), std::move(result->fds));
}

void SocketPeer::notify(const std::string& method, Payload params) {
  std::string line = notification_line(method, params);
  send_notification(std::move(line), std::move(params));
}

void SocketPeer::notify_line(std::string line) {
  send_notification(std::move(line), {});
}

void SocketPeer::send_notification(std::string line, Payload params) {
  if (state_ != State::Open) return;
  // Close the connection: the receiver notices that, but would not notice a missing notification.
  if (!fits(line, params)) return begin_close(too_large(line, params));
  send(std::move(line), std::move(params.fds));
}

// ---------------------------------------------------------------- send

void SocketPeer::send(std::string line, std::vector<UniqueFd> fds) {
  if (state_ == State::Closed || write_broken_) return;
  outbox_.push(std::move(line), std::move(fds));
  if (!joins_batch() && !waits_writable_) flush();
  if (outbox_.cost_bytes() > inbox_.limits().max_queued_bytes) {
    finish({Errc::QueueFull,
            fmt::format("the other end does not read: {} bytes are unsent", outbox_.cost_bytes())});
  }
}

/// True if the line is sent at the end of the thread's batch.
bool SocketPeer::joins_batch() {
  SendBatch* const batch = SendBatch::current();
  if (batch == nullptr || outbox_.cost_bytes() > kMaxBatchedBytes) return false;
  batch->add(self());
  return true;
}

void SocketPeer::send_batched() {
  if (state_ != State::Closed && !waits_writable_ && !outbox_.empty()) flush();
}

void SocketPeer::flush() {
  const auto sent = outbox_.flush(socket_.native_handle());
  if (!sent) return write_failed(sent.error());
  if (outbox_.empty()) {
    if (state_ == State::Closing) finish(why_);
    return;
  }
  waits_writable_ = true;
  socket_.async_wait(Socket::wait_write, [me = self()](const boost::system::error_code&) {
    me->waits_writable_ = false;
    if (me->state_ == State::Closed) return;
    me->flush();
    const bool drained = me->state_ == State::Open && me->outbox_.empty();
    if (drained && me->handlers_.on_drained) me->handlers_.on_drained();
  });
}

/// The other end no longer reads, but may have sent the reason before, so read that first.
void SocketPeer::write_failed(Error why) {
  outbox_.clear();
  write_broken_ = true;
  if (state_ == State::Closing) return finish(why_);
  why_ = std::move(why);
  // Posted, because the caller may be iterating over its peers. Cancelling wakes a pending wait.
  post([me = self()] {
    if (me->state_ != State::Open) return;
    if (!me->started_) return me->finish(me->why_);
    boost::system::error_code ignored;
    me->socket_.cancel(ignored);
  });
}

// ---------------------------------------------------------------- close

void SocketPeer::close() {
  begin_close({Errc::ConnectionLost, "this end closed the connection"});
}

void SocketPeer::close_now() {
  send_batched();  // without a batch, the socket would have these lines
  finish({Errc::ConnectionLost, "this end closed the connection"});
}

void SocketPeer::refuse_and_close(Error why, const Json& id) {
  send(error_line(id, why), {});
  begin_close(std::move(why));
}

void SocketPeer::begin_close(Error why) {
  if (state_ != State::Open) return;
  if (outbox_.empty()) return finish(std::move(why));
  state_ = State::Closing;
  why_ = std::move(why);
  inbox_.clear();
  timer_.expires_after(kLinger);
  timer_.async_wait([me = self()](const boost::system::error_code& error) {
    if (!error) me->finish(me->why_);
  });
}

void SocketPeer::finish(Error why) {
  if (std::exchange(state_, State::Closed) == State::Closed) return;
  boost::system::error_code ignored;
  socket_.close(ignored);
  timer_.cancel();
  inbox_.clear();
  outbox_.clear();
  post([me = self(), why = std::move(why)] { me->deliver_close(why); });
}

void SocketPeer::deliver_close(const Error& why) {
  calls_.fail_all(
      {Errc::ConnectionLost, "the connection ended before the reply arrived: " + why.detail});
  const Handlers handlers = std::exchange(handlers_, {});
  if (handlers.on_closed) handlers.on_closed(why);
}

std::shared_ptr<Peer> Peer::create(Socket socket, Handlers handlers, Limits limits) {
  return std::make_shared<SocketPeer>(std::move(socket), std::move(handlers), limits);
}

}  // namespace leasehold::control
