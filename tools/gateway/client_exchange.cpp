#include "tools/gateway/client_exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/status.hpp>
#include <iterator>
#include <utility>

#include "common/random.hpp"
#include "ipc/control/messages/tenant.hpp"
#include "tools/gateway/host_request.hpp"

namespace leasehold::gateway {
namespace {

using boost::asio::awaitable;

constexpr auto kWriteTimeout = std::chrono::seconds(30);  // while a client reads nothing

std::string request_id_of(const http::Head& head) {
  const auto given = head.only("X-Request-Id");
  return given && wire::is_x_request_id(*given) ? std::string(*given) : mint_request_id();
}

/// True for an answer that has neither a body nor fields that frame one.
bool has_no_body(int status) {
  return status == 204 || status == 304;
}

}  // namespace

ClientExchange::ClientExchange(PumpedStream& stream, http::Head head, Parties parties,
                               bool keep_alive)
    : stream_(stream),
      head_(std::move(head)),
      parties_(std::move(parties)),
      api_(api_of(head_.path())),
      x_request_id_(request_id_of(head_)),
      keep_alive_(keep_alive),
      leaves_body_out_(head_.method == "HEAD") {}

awaitable<bool> ClientExchange::write_text(std::string text) {
  if (text.empty()) co_return !stream_.is_ended();
  stream_.expires_after(kWriteTimeout);
  const http::Transfer sent = co_await stream_.write(boost::asio::buffer(text));
  stream_.expires_never();
  if (sent.error) stream_.close();
  co_return !sent.error;
}

awaitable<bool> ClientExchange::send(http::Answer answer) {
  has_begun_ = true;
  status_ = answer.status;
  std::string own = "X-Request-Id: " + x_request_id_ + "\r\n";
  if (api_ == Api::Messages) own += "request-id: " + x_request_id_ + "\r\n";
  const auto body = leaves_body_out_ ? http::Body::LeftOut : http::Body::Sent;
  return write_text(http::text_of(std::move(answer), keep_alive_, body, own));
}

awaitable<bool> ClientExchange::fail(Error error) {
  return send(error_answer(api_, error, x_request_id_));
}

std::string ClientExchange::head_text(int status, const Fields& fields) const {
  const auto phrase =
      boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(status));
  std::string text = fmt::format("HTTP/1.1 {} {}\r\n", status, std::string_view(phrase));
  for (const auto& [name, value] : fields) text += fmt::format("{}: {}\r\n", name, value);
  text += "X-Request-Id: " + x_request_id_ + "\r\n";
  if (api_ == Api::Messages) text += "request-id: " + x_request_id_ + "\r\n";
  if (!keep_alive_) text += "Connection: close\r\n";
  return text;
}

awaitable<bool> ClientExchange::send_whole(int status, const Fields& fields, std::string body) {
  has_begun_ = true;
  status_ = status;
  std::string text = head_text(status, fields);
  if (status != 204) text += fmt::format("Content-Length: {}\r\n", body.size());
  text += "\r\n";
  if (!leaves_body_out_) text += body;
  return write_text(std::move(text));
}

awaitable<bool> ClientExchange::begin(int status, const Fields& fields) {
  has_begun_ = true;
  status_ = status;
  leaves_body_out_ = leaves_body_out_ || has_no_body(status);
  is_chunked_ = head_.version >= 11 && !leaves_body_out_;
  keep_alive_ = keep_alive_ && (is_chunked_ || leaves_body_out_);
  std::string text = head_text(status, fields);
  if (is_chunked_) text += "Transfer-Encoding: chunked\r\n";
  return write_text(text + "\r\n");
}

awaitable<bool> ClientExchange::write(std::string piece) {
  if (leaves_body_out_) piece.clear();
  if (!is_chunked_) return write_text(std::move(piece));
  std::string framed = fmt::format("{:x}\r\n", piece.size());
  framed.reserve(framed.size() + piece.size() + 2);
  framed.append(piece).append("\r\n");
  return write_text(std::move(framed));
}

awaitable<bool> ClientExchange::end() {
  if (!is_chunked_) co_return !stream_.is_ended();
  co_return co_await write_text("0\r\n\r\n");
}

bool is_event_stream(const http::Head& answer) {
  return answer.only("Content-Type").value_or("").starts_with("text/event-stream");
}

Fields passed_on(const http::Head& answer) {
  Fields fields;
  std::ranges::copy_if(answer.fields, std::back_inserter(fields), [](const auto& field) {
    return !is_about_connection(field.first) &&
           !http::equals_ignoring_case(field.first, "Leasehold-Incarnation") &&
           !http::equals_ignoring_case(field.first, "X-Request-Id") &&
           !http::equals_ignoring_case(field.first, "request-id");
  });
  return fields;
}

}  // namespace leasehold::gateway
