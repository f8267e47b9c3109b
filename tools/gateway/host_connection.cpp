#include "tools/gateway/host_connection.hpp"

#include <fmt/format.h>

#include <boost/beast/http/error.hpp>
#include <utility>

#include "common/utf8.hpp"

namespace leasehold::gateway {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::awaitable;

constexpr std::size_t kReadBytes = 4 << 10;  // some tens of events

}  // namespace

std::unexpected<Error> HostConnection::failed(const beast::error_code& error,
                                              const http::Arrived& arrived) const {
  return fail(http::code_of_read(error),
              fmt::format("host {}: {}", host_, http::read_error_text(error, arrived)));
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

/// Parses what is there, or reads more. An eager parser takes the framing behind a piece, too, and
/// asks for more although it has the piece: that must not wait for the host's next bytes.
awaitable<Result<void>> HostConnection::parse_more() {
  beast::error_code error = reader_.parse();
  const bool has_piece = reader_.parser().is_header_done() && !reader_.lacks_piece();
  if (!error || (error == beast::http::error::need_more && has_piece)) co_return Result<void>();
  if (error != beast::http::error::need_more) co_return failed(error);
  const asio::mutable_buffer room = reader_.room();
  if (room.size() == 0) co_return failed(beast::http::error::buffer_overflow);
  const http::Transfer read = co_await stream_->read_some(room);
  has_answered_ = has_answered_ || read.bytes > 0;
  error = reader_.received(read);
  if (error) co_return failed(error, http::arrived_in(reader_.parser(), taken_bytes_));
  co_return Result<void>();
}

awaitable<Result<HostHead>> HostConnection::read_head(
    bool has_body, std::optional<std::chrono::milliseconds> timeout) {
  http::AnswerReader::Parser& parser = reader_.begin();
  taken_bytes_ = 0;
  parser.body_limit(kMaxAnswerBytes);
  parser.skip(!has_body);
  if (timeout) stream_->expires_after(*timeout);
  while (!parser.is_header_done()) {
    const Result<void> parsed = co_await parse_more();
    if (!parsed) co_return std::unexpected(parsed.error());
  }
  if (timeout) stream_->expires_never();
  if (parser.chunked()) parser.body_limit(boost::none);  // a stream: pieces are taken at once
  parser.eager(true);           // chunks that arrived together are one piece, not three calls each
  reader_.reserve(kReadBytes);  // Beast reads 512 bytes at a time into a new buffer
  HostHead read{.status = static_cast<int>(parser.get().result_int()), .head = {}};
  for (const auto& field : parser.get().base())
    read.head.fields.emplace_back(std::string(field.name_string()), std::string(field.value()));
  if (const auto checked = check_incarnation(read.head); !checked)
    co_return std::unexpected(checked.error());
  co_return read;
}

Result<void> HostConnection::check_incarnation(const http::Head& head) const {
  if (!incarnation_) return {};
  const std::string wanted = std::to_string(incarnation_->value);
  const auto named = head.only("Leasehold-Incarnation");
  if (named == wanted) return {};
  return fail(Errc::ConnectionLost,
              fmt::format("host {} answers as incarnation {}, and its cell has {}; it is used when "
                          "they are equal",
                          host_, named ? printable_excerpt(*named) : "none", wanted));
}

awaitable<Result<std::string>> HostConnection::read_body(
    std::optional<std::chrono::milliseconds> timeout) {
  if (timeout) stream_->expires_after(*timeout);
  while (reader_.lacks_piece()) {
    const Result<void> parsed = co_await parse_more();
    if (!parsed) co_return std::unexpected(parsed.error());
  }
  if (timeout) stream_->expires_never();
  std::string piece = reader_.take_piece();
  taken_bytes_ += piece.size();
  co_return piece;
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
  return reader_.is_reusable();
}

}  // namespace leasehold::gateway
