/// The part of a connection that moves files: bodies and answers that are too long to be kept in
/// memory.
///
/// Lifetime: the connection's. Threads: the one that runs `io`.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace leasehold::http {

class FileTransfer {
 public:
  virtual ~FileTransfer() = default;

  /// Reads the next piece of the body, at most 16 KiB; empty at its end. Errors: MessageTooLarge
  /// beyond the limit of files; BadRequest for a malformed body, and for one that ends too early.
  virtual boost::asio::awaitable<Result<std::string>> read_piece() = 0;

  /// Sends the head of an answer with status 200 whose body has this size. The caller then sends
  /// exactly that many bytes, or closes the connection with `give_up`.
  virtual boost::asio::awaitable<void> send_head(std::uint64_t size_bytes,
                                                 std::string_view content_type) = 0;
  virtual boost::asio::awaitable<void> send_piece(std::string bytes) = 0;
  virtual void give_up() = 0;
};

}  // namespace leasehold::http
