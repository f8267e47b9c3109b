/// Parses the answers that arrive on one connection of an HTTP client. No I/O.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <string>

#include "common/errc.hpp"
#include "ipc/http/byte_stream.hpp"
#include "ipc/http/http_message.hpp"

namespace leasehold::http {

/// The code of an error while an answer is read: TimedOut, MessageTooLarge, MalformedMessage for an
/// answer that is not HTTP, otherwise ConnectionLost.
Errc code_of_read(const boost::beast::error_code& error);

/// Threads: one.
class AnswerReader {
 public:
  using Parser = boost::beast::http::response_parser<boost::beast::http::string_body>;

  /// Begins the next answer. Bytes that were read after the one before are kept.
  Parser& begin();
  /// No answer is being read: `is_reusable` is false until the next one has ended.
  void reset() { parser_.reset(); }
  /// Precondition: `begin` came before.
  Parser& parser() { return *parser_; }

  /// Parses what was read. `need_more`: read into `room`, then call `received`.
  boost::beast::error_code parse();
  /// Memory for the next read; empty when the head is too long.
  boost::asio::mutable_buffer room();
  /// Takes what a read into `room` gave. The end of the connection ends an answer without a length,
  /// and is an error otherwise.
  boost::beast::error_code received(const Transfer& read);

  /// True while neither a piece of the body nor its end has arrived.
  bool lacks_piece() { return parser_->get().body().empty() && !parser_->is_done(); }
  /// The bytes of the body that have arrived since the last call.
  std::string take_piece();
  /// True if the answer has ended and the connection may carry another one.
  bool is_reusable() const;
  void reserve(std::size_t bytes) { buffer_.reserve(bytes); }

 private:
  ReadBuffer buffer_;
  std::optional<Parser> parser_;
};

}  // namespace leasehold::http
