#include "ipc/http/http_exchange.hpp"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include "common/cli/version.hpp"
#include "common/machine/close_on_exec.hpp"
#include "ipc/http/answer_reader.hpp"
#include "ipc/http/early_end.hpp"

namespace leasehold::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;

constexpr std::uint32_t kMaxHeaderBytes = 8 << 10;
constexpr std::size_t kReadBytes = 16 << 10;
constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);

Errc code_of(beast::http::status status) {
  const bool is_unknown = status == beast::http::status::not_found ||
                          status == beast::http::status::method_not_allowed ||
                          status == beast::http::status::not_implemented;
  return is_unknown ? Errc::UnknownMethod : Errc::ConnectionRefused;
}

std::unexpected<Error> failed(const Url& url, Errc code, std::string_view why) {
  return fail(code, fmt::format("the server at {}: {}", url.authority(), why));
}

std::unexpected<Error> failed(const Url& url, const beast::error_code& error,
                              const Arrived& arrived = {}) {
  return failed(url, code_of_read(error), read_error_text(error, arrived));
}

beast::http::request<beast::http::string_body> message_of(const Url& url, OutgoingRequest request) {
  beast::http::request<beast::http::string_body> message(request.verb, url.path + request.target,
                                                         11);
  message.set(beast::http::field::host, url.authority());
  message.set(beast::http::field::user_agent, fmt::format("leasehold-worker/{}", version()));
  message.set(beast::http::field::accept, "application/json");
  message.keep_alive(false);
  if (request.body.empty()) return message;
  message.set(beast::http::field::content_type, "application/json");
  message.body() = std::move(request.body);
  message.prepare_payload();
  return message;
}

}  // namespace

asio::awaitable<Result<std::string>> exchange(NameLookup& names, const Url& url,
                                              OutgoingRequest request, ExchangeLimits limits) {
  const auto deadline = std::chrono::steady_clock::now() + limits.timeout;
  const auto addresses = co_await names.find(url, limits.timeout);
  if (!addresses) co_return failed(url, addresses.error().code, addresses.error().detail);

  beast::tcp_stream stream(co_await asio::this_coro::executor);
  stream.expires_at(deadline);
  auto [connect_error, endpoint] = co_await stream.async_connect(*addresses, kAsTuple);
  set_close_on_exec(stream.socket().native_handle());
  if (connect_error) {
    const bool timed_out = connect_error == beast::error::timeout;
    co_return failed(url, timed_out ? Errc::TimedOut : Errc::ConnectionRefused,
                     connect_error.message());
  }

  const beast::http::request<beast::http::string_body> message =
      message_of(url, std::move(request));
  auto [write_error, sent_bytes] = co_await beast::http::async_write(stream, message, kAsTuple);
  if (write_error) co_return failed(url, write_error);

  beast::http::response_parser<beast::http::string_body> parser;
  parser.header_limit(kMaxHeaderBytes);
  parser.body_limit(limits.max_answer_bytes);
  beast::flat_buffer buffer(kMaxHeaderBytes + kReadBytes);
  auto [read_error, read_bytes] =
      co_await beast::http::async_read(stream, buffer, parser, kAsTuple);
  if (read_error) co_return failed(url, read_error, arrived_in(parser));
  if (const beast::http::status status = parser.get().result(); status != beast::http::status::ok) {
    co_return failed(url, code_of(status),
                     fmt::format("it answered {}", parser.get().result_int()));
  }
  co_return std::move(parser.get().body());
}

}  // namespace leasehold::http
