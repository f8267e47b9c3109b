// Requests are read within their limits, whatever an attacker sends as framing.
#include "ipc/http/http_message.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>

#include "ipc/http/http_await.hpp"

using namespace leasehold;
using namespace leasehold::http;
namespace asio = boost::asio;
using Local = asio::local::stream_protocol;

namespace {

constexpr std::size_t kMaxBodyBytes = 64 << 10;
const std::string kChunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";

/// What became of one request, and what the server had taken of it by then.
struct Outcome {
  int status = 0;  ///< 0: read whole, or the connection ended.
  bool is_whole = false;
  std::string body;
  std::string refusal{};  ///< The body of the answer that refuses it.
  std::size_t taken_bytes = 0;
};

/// Serves one request on one end of a pair of sockets; the other end sends `begin`, then `again`
/// for ever, or ends.
class OneRequest {
 public:
  OneRequest(std::string begin, std::string again) {
    Local::socket server(io_);
    asio::local::connect_pair(client_, server);
    stream_.emplace(asio::generic::stream_protocol::socket(std::move(server)));
    asio::co_spawn(io_, send(std::move(begin), std::move(again)), asio::detached);
    asio::co_spawn(io_, serve(), asio::detached);
    io_.run();
    outcome_.taken_bytes = sent_bytes_ - unread_bytes_;
  }
  const Outcome& outcome() const { return outcome_; }

 private:
  asio::awaitable<void> send(std::string begin, std::string again) {
    std::string next = std::move(begin);
    boost::system::error_code failed;
    while (!failed && !next.empty()) {
      const auto [error, size] = co_await asio::async_write(client_, asio::buffer(next), kAwait);
      sent_bytes_ += size;
      failed = error;
      next = again;
    }
    if (!failed) client_.shutdown(Local::socket::shutdown_send);
  }

  asio::awaitable<void> serve() {
    ReadBuffer buffer;
    Parser parser;
    RequestHead head = co_await read_request_head(*stream_, buffer, parser, kMaxBodyBytes);
    if (head.refused) outcome_.status = head.refused->status;
    if (head.head && !head.refused) {
      const RequestBody read = co_await read_request_body(*stream_, buffer, parser, kMaxBodyBytes);
      if (read.refused) {
        outcome_.status = read.refused->status;
        outcome_.refusal = read.refused->body;
      }
      outcome_.is_whole = read.is_whole;
      outcome_.body = parser.get().body();
    }
    unread_bytes_ = stream_->socket().available();
    stream_->close();
  }

  asio::io_context io_;
  Local::socket client_{io_};
  std::optional<Stream> stream_;
  Outcome outcome_;
  std::size_t sent_bytes_ = 0;
  std::size_t unread_bytes_ = 0;
};

Outcome outcome_of(const std::string& begin, const std::string& again = {}) {
  return OneRequest(begin, again).outcome();
}

}  // namespace

TEST_CASE("http message: framing that never ends is refused within the limits of head and body") {
  const std::string many(4096, 'a');
  struct Case {
    const char* what;
    std::string begin, again;
    int status;
  };
  const Case cases[] = {
      {"a field", "GET / HTTP/1.1\r\nX: ", many, 431},
      {"fields", "GET / HTTP/1.1\r\n", "X: y\r\n", 431},
      {"a target", "GET /", many, 431},
      {"an extension", kChunked + "1;", many, 413},
      {"extensions", kChunked + "1", ";a=b", 413},
      {"a quoted extension", kChunked + "1;a=\"", many, 413},
      {"zeros of a size", kChunked, std::string(4096, '0'), 413},
      {"extensions of the last chunk", kChunked + "0;", many, 413},
      {"a trailer", kChunked + "0\r\nX: ", many, 413},
      {"trailers", kChunked + "0\r\n", "X: y\r\n", 413},
      {"blanks of a size", kChunked + "1", std::string(4096, ' '), 413},
      {"chunks of one byte", kChunked, "1\r\na\r\n", 413},
      {"chunks with extensions", kChunked, "1;" + many + "\r\na\r\n", 413},
      {"data", kChunked, "1000\r\n" + many + "\r\n", 413},
  };
  for (const Case& each : cases) {
    INFO(each.what);
    const Outcome outcome = outcome_of(each.begin, each.again);
    CHECK(outcome.status == each.status);
    CHECK(outcome.taken_bytes <= kMaxBodyBytes + 3 * kMaxHeadBytes);
  }
}

TEST_CASE("http message: empty lines and bare line ends are refused, however many come") {
  for (const std::string again : {"\r\n", "\n", "\r", "\r\r\n"}) {
    const Outcome before_head = outcome_of(again, again);
    CHECK((before_head.status == 400 || before_head.status == 431));
    CHECK(before_head.taken_bytes <= 2 * kMaxHeadBytes);
    const Outcome in_body = outcome_of(kChunked + again, again);
    CHECK((in_body.status == 400 || in_body.status == 413));
    CHECK(in_body.taken_bytes <= 2 * kMaxHeadBytes);
  }
}

TEST_CASE("http message: a broken chunk, trailer or end of a body is answered with 400") {
  for (const std::string broken :
       {"x\r\n", "-1\r\na\r\n", "1\r\nab\r\n0\r\n\r\n", "1\na\n", "1;;\r\na\r\n0\r\n\r\n",
        "10000000000000000\r\n", "1\r\na\r\n0\r\nno colon\r\n\r\n", "0\r\n: x\r\n\r\n", "5\r\nab",
        "1\r\na\r\n", "0\r\nX: y\r\n"}) {
    INFO(broken);
    const Outcome outcome = outcome_of(kChunked + broken);
    CHECK(outcome.status == 400);
    CHECK_FALSE(outcome.is_whole);
  }
}

TEST_CASE("http message: a body that ends early is refused with how much of it arrived") {
  const Outcome counted = outcome_of("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab");
  CHECK(counted.status == 400);
  CHECK(counted.refusal.contains("after 2 of 5 bytes of the body; send the whole request again"));
  const Outcome chunked = outcome_of(kChunked + "3\r\nabc\r\n");
  CHECK(chunked.status == 400);
  CHECK(chunked.refusal.contains("after 3 bytes of the body, before its end"));
}

TEST_CASE("http message: chunks with a few extensions and trailers make one body of full size") {
  const std::string data(kMaxBodyBytes - 1, 'a');
  const std::string sent =
      kChunked + "0001;a=b;c=\"d\"\r\nb\r\nffff\r\n" + data + "\r\n000;x\r\nX: y\r\nZ: w\r\n\r\n";
  const Outcome outcome = outcome_of(sent);
  CHECK(outcome.is_whole);
  CHECK(outcome.body == "b" + data);
}

TEST_CASE("http message: a head has at most 128 fields, since each costs memory") {
  const auto with_fields = [](int count) {
    std::string head = "GET / HTTP/1.1\r\nHost: h\r\n";
    for (int i = 0; i < count - 1; ++i) head += "X: y\r\n";
    return outcome_of(head + "\r\n");
  };
  CHECK(with_fields(128).is_whole);
  CHECK(with_fields(129).status == 431);
}
