#include "tools/gateway/host_connection.hpp"

#include <fmt/format.h>

#include <boost/beast/core/read_size.hpp>
#include <boost/beast/http/error.hpp>
#include <utility>

namespace leasehold::gateway {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::awaitable;

constexpr std::size_t kReadBytes = 4 << 10;  // some tens of events

Errc code_of(const beast::error_code& error) {
  if (error == beast::error::timeout) return Errc::TimedOut;
  using enum beast::http::error;
  if (error == body_limit || error == header_limit || error == buffer_overflow)
    return Errc::MessageTooLarge;
  if (error == end_of_stream || error == partial_message) return Errc::ConnectionLost;
  const bool is_http = error.category() == make_error_code(bad_version).category();
  return is_http ? Errc::MalformedMessage : Errc::ConnectionLost;
}

}  // namespace

std::unexpected<Error> HostConnection::failed(const beast::error_code& error) const {
  return fail(code_of(error), fmt::format("host {}: {}", host_, error.message()));
}

awaitable<Result<void>> HostConnection::send(std::string request,
                                             std::chrono::milliseconds timeout) {
  has_answered_ = false;
  stream_->expires_after(timeout);
  const http::Transfer sent = co_await stream_->write(asio::buffer(request));
  stream_->expires_never();
  if (sent.error) co_return failed(sent.error);
  co_return Result<void>();
}

/// Parses what is there, or reads more.
awaitable<Result<void>> HostConnection::parse_more() {
  beast::error_code error = beast::http::error::need_more;
  if (buffer_.size() > 0) {
    const std::size_t taken = parser_->put(buffer_.data(), error);
    buffer_.consume(taken);
    if (!error) co_return Result<void>();
    if (error != beast::http::error::need_more) co_return failed(error);
  }
  const std::size_t room = beast::read_size(buffer_, http::kMaxHeadBytes);
  if (room == 0) co_return failed(beast::http::error::buffer_overflow);
  const http::Transfer read = co_await stream_->read_some(buffer_.prepare(room));
  buffer_.commit(read.bytes);
  has_answered_ = has_answered_ || read.bytes > 0;
  if (!read.error) co_return Result<void>();
  if (read.error != asio::error::eof) co_return failed(read.error);
  error = beast::http::error::end_of_stream;
  if (parser_->got_some()) parser_->put_eof(error);
  if (error) co_return failed(error);
  co_return Result<void>();
}

awaitable<Result<HostHead>> HostConnection::read_head(
    bool has_body, std::optional<std::chrono::milliseconds> timeout) {
  parser_.emplace();
  parser_->header_limit(http::kMaxHeadBytes);
  parser_->body_limit(kMaxAnswerBytes);
  parser_->skip(!has_body);
  if (timeout) stream_->expires_after(*timeout);
  while (!parser_->is_header_done()) {
    const Result<void> parsed = co_await parse_more();
    if (!parsed) co_return std::unexpected(parsed.error());
  }
  if (timeout) stream_->expires_never();
  if (parser_->chunked()) parser_->body_limit(boost::none);  // a stream: pieces are taken at once
  parser_->eager(true);         // chunks that arrived together are one piece, not three calls each
  buffer_.reserve(kReadBytes);  // Beast reads 512 bytes at a time into a new buffer
  HostHead read{.status = static_cast<int>(parser_->get().result_int()), .head = {}};
  for (const auto& field : parser_->get().base())
    read.head.fields.emplace_back(std::string(field.name_string()), std::string(field.value()));
  co_return read;
}

awaitable<Result<std::string>> HostConnection::read_body(
    std::optional<std::chrono::milliseconds> timeout) {
  if (timeout) stream_->expires_after(*timeout);
  while (parser_->get().body().empty() && !parser_->is_done()) {
    const Result<void> parsed = co_await parse_more();
    if (!parsed) co_return std::unexpected(parsed.error());
  }
  if (timeout) stream_->expires_never();
  co_return std::exchange(parser_->get().body(), {});
}

awaitable<Result<std::string>> HostConnection::read_whole_body(std::chrono::milliseconds timeout,
                                                               std::size_t max_bytes) {
  std::string whole;
  while (true) {
    auto piece = co_await read_body(timeout);
    if (!piece) co_return piece;
    if (piece->empty()) co_return whole;
    whole += *piece;
    if (whole.size() > max_bytes) {
      co_return fail(Errc::MessageTooLarge,
                     fmt::format("host {} answers more than {} bytes", host_, max_bytes));
    }
  }
}

bool HostConnection::is_reusable() const {
  return parser_ && parser_->is_done() && parser_->keep_alive() && buffer_.size() == 0;
}

}  // namespace leasehold::gateway
