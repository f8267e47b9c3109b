#include "tools/gateway/pumped_stream.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

namespace leasehold::gateway {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::awaitable;

PumpedStream::PumpedStream(asio::io_context& io, std::unique_ptr<http::ByteStream> inner)
    : io_(io), inner_(std::move(inner)), arrived_(io), taken_(io), write_timer_(io) {
  inner_->expires_never();
}

void PumpedStream::start() {
  asio::co_spawn(io_, pump(), asio::detached);
}

awaitable<void> PumpedStream::pump() {
  const auto self = shared_from_this();
  while (!is_ended_) {
    const std::size_t room = std::min(arriving_.size(), http::kMaxHeadBytes - unread_.size());
    if (room == 0) {
      co_await taken_.wait();
      continue;
    }
    const http::Transfer read = co_await inner_->read_some(asio::buffer(arriving_.data(), room));
    asio::buffer_copy(unread_.prepare(read.bytes), asio::buffer(arriving_.data(), read.bytes));
    unread_.commit(read.bytes);
    if (read.error) break;
    arrived_.notify();
  }
  end();
}

void PumpedStream::end() {
  if (std::exchange(is_ended_, true)) return;
  arrived_.notify();
  taken_.notify();
  cut();
}

void PumpedStream::cut() {
  if (const auto action = std::exchange(on_end_, nullptr)) action();
}

awaitable<http::Transfer> PumpedStream::read_some(asio::mutable_buffer buffer) {
  const auto self = shared_from_this();
  while (unread_.size() == 0 && !is_ended_) {
    if (Signal::Clock::now() >= expiry_) {
      close();
      co_return http::Transfer{beast::error::timeout, 0};
    }
    co_await arrived_.wait_until(expiry_);
  }
  http::Transfer done;
  done.bytes = asio::buffer_copy(buffer, unread_.data());
  unread_.consume(done.bytes);
  taken_.notify();
  if (done.bytes == 0) done.error = asio::error::eof;
  co_return done;
}

awaitable<http::Transfer> PumpedStream::write(asio::const_buffer bytes) {
  const auto self = shared_from_this();
  write_expiry_ = expiry_;
  if (!is_write_timed_) time_write();
  const http::Transfer done = co_await inner_->write(bytes);
  write_expiry_ = kNever;
  co_return done;
}

/// Closes the stream if a write has expired. The timer goes on from one write to the next: to start
/// it for each costs more than to copy an event.
void PumpedStream::time_write() {
  is_write_timed_ = write_expiry_ != kNever && !is_ended_;
  if (!is_write_timed_) return;
  write_timer_.expires_at(write_expiry_);
  write_timer_.async_wait([weak = weak_from_this()](const beast::error_code& error) {
    const auto stream = weak.lock();
    if (!stream || error) return;
    if (stream->write_expiry_ <= Signal::Clock::now()) stream->close();
    stream->time_write();
  });
}

void PumpedStream::expires_after(std::chrono::steady_clock::duration time) {
  expiry_ = Signal::Clock::now() + time;
}

void PumpedStream::close() {
  inner_->close();
  end();
}

}  // namespace leasehold::gateway
