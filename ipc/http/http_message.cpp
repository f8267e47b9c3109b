#include "ipc/http/http_message.hpp"

#include <fmt/format.h>

#include <utility>

#include <boost/beast/core/read_size.hpp>
#include <boost/beast/http/error.hpp>

#include "ipc/http/early_end.hpp"
#include "ipc/http/http_errors.hpp"

namespace leasehold::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;

std::string_view phrase(int status) {
  return beast::http::obsolete_reason(static_cast<beast::http::status>(status));
}

/// Moves the head out of the message, so that the fields of a request, which may be many, are
/// stored once.
Head take_head(beast::http::request<beast::http::string_body>& message) {
  Head head{.method = std::string(message.method_string()),
            .target = std::string(message.target()),
            .version = static_cast<int>(message.version()),
            .fields = {}};
  for (const auto& field : message)
    head.fields.emplace_back(std::string(field.name_string()), std::string(field.value()));
  message.clear();
  return head;
}

std::optional<Answer> refuse_malformed(const beast::error_code& error) {
  const bool is_malformed =
      error.category() == beast::error_code(beast::http::error::bad_method).category();
  if (!is_malformed || error == beast::http::error::end_of_stream) return std::nullopt;
  return plain_error(400, "bad_framing", "malformed: " + error.message());
}

std::optional<Answer> refuse_unread_head(const beast::error_code& error) {
  if (error == beast::http::error::header_limit || error == beast::http::error::buffer_overflow)
    return plain_error(431, "head_too_large", "the head may have 16 KiB");
  if (error == beast::http::error::partial_message) return std::nullopt;
  return refuse_malformed(error);
}

std::optional<Answer> refuse_unread_body(const beast::error_code& error, const Parser& parser,
                                         std::size_t max_body_bytes) {
  if (error == beast::http::error::partial_message) {
    return plain_error(400, "bad_framing",
                       early_end_text(arrived_in(parser)) + "; send the whole request again");
  }
  if (error == beast::http::error::body_limit) {
    return plain_error(413, "body_too_large",
                       fmt::format("the body is longer than {} bytes; send less", max_body_bytes));
  }
  if (error == beast::http::error::buffer_overflow) {
    return plain_error(413, "framing_too_large",
                       "the size lines, extensions and trailers of the chunks are longer than "
                       "16 KiB; send larger chunks without them");
  }
  return refuse_malformed(error);
}

enum class Part { Head, Body };

bool has(const Parser& parser, Part part) {
  return part == Part::Head ? parser.is_header_done() : parser.is_done();
}

/// Reads and parses until the parser has this part, which may have at most `max_bytes`. Errors:
/// those of the parser and of the stream; buffer_overflow when the part is longer. Beast's own read
/// operation does not count the bytes, and may end before the part is whole when the buffer is
/// full.
asio::awaitable<beast::error_code> parse_part(Part part, ByteStream& stream, ReadBuffer& buffer,
                                              Parser& parser, std::size_t max_bytes) {
  for (std::size_t parsed = 0; !has(parser, part);) {
    beast::error_code error = beast::http::error::need_more;
    if (buffer.size() > 0) {
      const std::size_t taken = parser.put(buffer.data(), error);
      buffer.consume(taken);
      parsed += taken;
    }
    const std::size_t room = beast::read_size(buffer, kMaxHeadBytes);
    if (parsed > max_bytes || (error == beast::http::error::need_more && room == 0))
      error = beast::http::error::buffer_overflow;
    if (!error) continue;
    if (error != beast::http::error::need_more) co_return error;
    const auto [read_error, size] = co_await stream.read_some(buffer.prepare(room));
    buffer.commit(size);
    if (!read_error) continue;
    if (read_error != asio::error::eof) co_return read_error;
    co_return parser.got_some() ? beast::http::error::partial_message
                                : beast::http::error::end_of_stream;
  }
  co_return beast::error_code();
}

}  // namespace

std::string text_of(Answer&& answer, bool keep_alive, Body body, std::string_view extra_headers) {
  std::string text = fmt::format("HTTP/1.1 {} {}\r\n", answer.status, phrase(answer.status));
  if (answer.status != 204) {
    text += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n", answer.content_type,
                        answer.body.size());
  }
  if (answer.retry_after_s > 0) text += fmt::format("Retry-After: {}\r\n", answer.retry_after_s);
  if (answer.status == 401) text += "WWW-Authenticate: Bearer\r\n";
  text.append(answer.extra_headers).append(extra_headers);
  if (!keep_alive) text += "Connection: close\r\n";
  text += "\r\n";
  if (body == Body::LeftOut) return text;
  return std::move(answer.body.insert(0, text));
}

asio::awaitable<RequestHead> read_request_head(ByteStream& stream, ReadBuffer& buffer,
                                               Parser& parser, std::size_t max_body_bytes) {
  parser.header_limit(kMaxHeadBytes);
  parser.body_limit(boost::none);  // refuse_head checks the length
  const beast::error_code error =
      co_await parse_part(Part::Head, stream, buffer, parser, kMaxHeadBytes);
  RequestHead read;
  if (error) {
    read.refused = refuse_unread_head(error);
    co_return read;
  }
  read.head = take_head(parser.get());
  read.refused = refuse_head(*read.head, max_body_bytes);
  co_return read;
}

asio::awaitable<RequestHead> read_request_head(Stream& stream, ReadBuffer& buffer, Parser& parser,
                                               std::size_t max_body_bytes) {
  PlainStream<Stream&> plain(stream);
  co_return co_await read_request_head(plain, buffer, parser, max_body_bytes);
}

asio::awaitable<RequestBody> read_request_body(ByteStream& stream, ReadBuffer& buffer,
                                               Parser& parser, std::size_t max_body_bytes) {
  parser.body_limit(max_body_bytes);
  const beast::error_code error =
      co_await parse_part(Part::Body, stream, buffer, parser, max_body_bytes + kMaxHeadBytes);
  RequestBody read;
  parser.get().clear();  // nothing reads the trailers
  read.is_whole = !error;
  if (error) read.refused = refuse_unread_body(error, parser, max_body_bytes);
  co_return read;
}

asio::awaitable<RequestBody> read_request_body(Stream& stream, ReadBuffer& buffer, Parser& parser,
                                               std::size_t max_body_bytes) {
  PlainStream<Stream&> plain(stream);
  co_return co_await read_request_body(plain, buffer, parser, max_body_bytes);
}

asio::awaitable<Result<std::string>> read_body_piece(ByteStream& stream, ReadBuffer& buffer,
                                                     Parser& parser, std::uint64_t& read,
                                                     std::uint64_t max_body_bytes) {
  while (parser.get().body().empty() && !parser.is_done()) {
    beast::error_code error = beast::http::error::need_more;
    if (buffer.size() > 0) {
      const std::size_t taken = parser.put(buffer.data(), error);
      buffer.consume(taken);
      read += taken;
    }
    if (read > max_body_bytes + kMaxHeadBytes) {
      co_return fail(Errc::MessageTooLarge,
                     fmt::format("the body is longer than {} bytes; send less", max_body_bytes));
    }
    const std::size_t room = beast::read_size(buffer, kMaxHeadBytes);
    if (!error) continue;
    if (error != beast::http::error::need_more || room == 0)
      co_return fail(Errc::BadRequest, "the body is malformed: " + error.message());
    const auto [read_error, size] = co_await stream.read_some(buffer.prepare(room));
    buffer.commit(size);
    if (read_error) {
      co_return fail(Errc::BadRequest,
                     fmt::format("the connection ended after {} bytes of the body ({}); send the "
                                 "whole request again",
                                 read, read_error.message()));
    }
  }
  co_return std::exchange(parser.get().body(), std::string());
}

asio::awaitable<Result<std::string>> read_body_piece(Stream& stream, ReadBuffer& buffer,
                                                     Parser& parser, std::uint64_t& read,
                                                     std::uint64_t max_body_bytes) {
  PlainStream<Stream&> plain(stream);
  co_return co_await read_body_piece(plain, buffer, parser, read, max_body_bytes);
}

}  // namespace leasehold::http
