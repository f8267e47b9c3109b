#include "ipc/http/http_message.hpp"

#include <fmt/format.h>

#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>

#include "ipc/http/http_await.hpp"
#include "ipc/http/http_errors.hpp"

namespace leasehold::http {
namespace {

namespace beast = boost::beast;

std::string_view phrase(int status) {
  return beast::http::obsolete_reason(static_cast<beast::http::status>(status));
}

Head head_of(const beast::http::request<beast::http::string_body>& message) {
  Head head{.method = std::string(message.method_string()),
            .target = std::string(message.target()),
            .version = static_cast<int>(message.version())};
  for (const auto& field : message)
    head.fields.emplace_back(std::string(field.name_string()), std::string(field.value()));
  return head;
}

std::optional<Answer> refuse_unread(const beast::error_code& error) {
  if (error == beast::http::error::header_limit)
    return plain_error(431, "head_too_large", "the head may have 16 KiB");
  const bool is_malformed =
      error.category() == beast::error_code(beast::http::error::bad_method).category();
  if (is_malformed && error != beast::http::error::end_of_stream &&
      error != beast::http::error::partial_message)
    return plain_error(400, "bad_framing", "malformed: " + error.message());
  return std::nullopt;
}

}  // namespace

std::string text_of(const Answer& answer, bool keep_alive, Body body) {
  std::string text =
      fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n", answer.status,
                  phrase(answer.status), answer.content_type, answer.body.size());
  if (answer.retry_after_s > 0) text += fmt::format("Retry-After: {}\r\n", answer.retry_after_s);
  if (answer.status == 401) text += "WWW-Authenticate: Bearer\r\n";
  text += answer.more_fields;
  if (!keep_alive) text += "Connection: close\r\n";
  text += "\r\n";
  return body == Body::Sent ? text + answer.body : text;
}

boost::asio::awaitable<RequestHead> read_request_head(Stream& stream, beast::flat_buffer& buffer,
                                                      Parser& parser, std::size_t max_body_bytes) {
  parser.header_limit(kMaxHeadBytes);
  parser.body_limit(boost::none);  // refuse_head checks a length
  const auto [error, size] =
      co_await beast::http::async_read_header(stream, buffer, parser, kAwait);
  RequestHead read;
  if (error) {
    read.refused = refuse_unread(error);
    co_return read;
  }
  read.head = head_of(parser.get());
  read.refused = refuse_head(*read.head, max_body_bytes);
  co_return read;
}

}  // namespace leasehold::http
