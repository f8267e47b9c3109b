/// A connection, encrypted or not.
///
/// One read and one write may be pending at the same time. Threads: the one that runs the stream's
/// context.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/error.hpp>
#include <chrono>
#include <cstddef>
#include <utility>

#include "ipc/http/http_await.hpp"

namespace leasehold::http {

/// How far a read or a write came. `bytes` counts also when there is an error.
struct Transfer {
  boost::beast::error_code error;
  std::size_t bytes = 0;
};

class ByteStream {
 public:
  virtual ~ByteStream() = default;

  /// Reads at least one byte. Errors: eof at the regular end, beast::error::timeout, others.
  virtual boost::asio::awaitable<Transfer> read_some(boost::asio::mutable_buffer buffer) = 0;
  /// Writes all bytes unless it fails.
  virtual boost::asio::awaitable<Transfer> write(boost::asio::const_buffer bytes) = 0;
  /// Reads and writes that begin later fail with beast::error::timeout after this time from now.
  virtual void expires_after(std::chrono::steady_clock::duration time) = 0;
  virtual void expires_never() = 0;
  /// Closes the connection; pending operations fail.
  virtual void close() = 0;
};

/// A connection that is not encrypted. `Stream` is a beast::basic_stream, or a reference to one.
template <class Stream>
class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(Stream stream) : stream_(std::forward<Stream>(stream)) {}

  boost::asio::awaitable<Transfer> read_some(boost::asio::mutable_buffer buffer) override {
    const auto [error, bytes] = co_await stream_.async_read_some(buffer, kAwait);
    co_return Transfer{error, bytes};
  }
  boost::asio::awaitable<Transfer> write(boost::asio::const_buffer bytes) override {
    Transfer done;
    while (!done.error && done.bytes < bytes.size()) {
      const auto [error, size] = co_await stream_.async_write_some(bytes + done.bytes, kAwait);
      done = {error, done.bytes + size};
    }
    co_return done;
  }
  void expires_after(std::chrono::steady_clock::duration time) override {
    stream_.expires_after(time);
  }
  void expires_never() override { stream_.expires_never(); }
  void close() override { stream_.close(); }

 private:
  Stream stream_;
};

}  // namespace leasehold::http
