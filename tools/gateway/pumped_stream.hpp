/// A client's connection that is always read, so that a client that leaves is noticed at once.
///
/// At most 16 KiB are kept until the caller reads them: the client's next request. A client that
/// ends its sending side counts as gone, as for nginx. A timeout closes the connection.
///
/// Lifetime: shared; the coroutine that reads keeps it until the connection ends. Threads: the one
/// that runs `io`.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "ipc/http/http_message.hpp"
#include "tools/gateway/signal.hpp"

namespace leasehold::gateway {

class PumpedStream final : public http::ByteStream,
                           public std::enable_shared_from_this<PumpedStream> {
 public:
  PumpedStream(boost::asio::io_context& io, std::unique_ptr<http::ByteStream> inner);

  /// Begins to read. Call once.
  void start();
  /// The client has left, or the connection was closed.
  bool is_ended() const { return is_ended_; }
  /// Called once when that happens, or by `cut`; empty: nothing is called.
  void on_end(std::function<void()> action) { on_end_ = std::move(action); }
  /// Ends what a host does for the client, who stays connected and gets the reason.
  void cut();

  boost::asio::awaitable<http::Transfer> read_some(boost::asio::mutable_buffer buffer) override;
  boost::asio::awaitable<http::Transfer> write(boost::asio::const_buffer bytes) override;
  void expires_after(std::chrono::steady_clock::duration time) override;
  void expires_never() override { expiry_ = kNever; }
  void close() override;

 private:
  static constexpr auto kNever = Signal::Clock::time_point::max();

  boost::asio::awaitable<void> pump();
  void time_write();
  void end();

  boost::asio::io_context& io_;
  std::unique_ptr<http::ByteStream> inner_;
  std::array<char, 4096> arriving_{};  // apart, because `read_some` moves the content of `unread_`
  http::ReadBuffer unread_;
  Signal arrived_;  // bytes, or the end
  Signal taken_;    // there is room again
  boost::asio::steady_timer write_timer_;
  Signal::Clock::time_point expiry_ = kNever;
  Signal::Clock::time_point write_expiry_ = kNever;  // of the write in progress
  bool is_write_timed_ = false;
  std::function<void()> on_end_;
  bool is_ended_ = false;
};

}  // namespace leasehold::gateway
