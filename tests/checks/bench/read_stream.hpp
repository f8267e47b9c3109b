/// The reading side of a connection to a server. It reads until the connection is closed or lost.
///
/// Lifetime: shared, alive while it reads; the io_context outlives it. Threads: the one that runs
/// the io_context.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "ipc/control/transport/peer.hpp"

namespace leasehold::bench {

class ReadStream : public std::enable_shared_from_this<ReadStream> {
 public:
  virtual ~ReadStream() = default;
  ReadStream(const ReadStream&) = delete;
  ReadStream& operator=(const ReadStream&) = delete;

  /// Closes the connection. Neither use() nor lost() is called afterwards.
  void close();

 protected:
  explicit ReadStream(control::Socket socket) : socket_(std::move(socket)) {}

  /// Starts reading.
  void read_more();
  /// Blocks until all is sent. Errors: ConnectionLost.
  Result<void> write(std::string_view text);
  bool is_closed() const { return closed_; }

 private:
  /// Called when more data has arrived. Removes from `unread` what it uses.
  virtual void use(std::string& unread) = 0;
  /// Called once when nothing more arrives, but not after close().
  virtual void lost(Error why) = 0;

  control::Socket socket_;
  std::string unread_;
  std::array<char, 65536> chunk_{};
  bool closed_ = false;
};

}  // namespace leasehold::bench
