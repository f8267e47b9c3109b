// Clients that read streams and pages at little cost.
#include <boost/asio/io_context.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <thread>

#include "ipc/control/transport/peer.hpp"
#include "ipc/http/page_server.hpp"
#include "tests/checks/bench/light_stream.hpp"
#include "tests/checks/bench/read_stream.hpp"
#include "tests/checks/bench/speculate_bench.hpp"
#include "tests/checks/bench/sse_stream.hpp"
#include "tests/support/temporary_directory.hpp"
#include "worker/http/api/api_answer.hpp"

namespace leasehold::bench {
namespace {

/// A server that sends what the test says, on one thread with the client.
struct Server {
  boost::asio::io_context io;
  TemporaryDirectory folder = TemporaryDirectory::create("stream").value();
  boost::asio::local::stream_protocol::acceptor acceptor =
      control::listen_on(io, folder.file("s"), 0600).value();
  int tokens = 0;
  int ends = 0;
  std::optional<Error> error;

  std::string path() const { return folder.file("s"); }
  auto on_token() {
    return [this] { ++tokens; };
  }
  /// For both kinds of Handlers::on_end.
  auto on_end() {
    return [this](const auto& how) {
      ++ends;
      if (!how) error = how.error();
    };
  }
  void send(control::Socket& client, std::string_view text, std::size_t piece) {
    for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
      boost::asio::write(client, boost::asio::buffer(text.substr(0, piece)));
      io.poll();
      io.restart();
    }
  }
};

std::string chunk(const std::string& data) {
  const std::string event = "data: " + data + "\n\n";
  std::ostringstream size;
  size << std::hex << event.size();
  return size.str() + "\r\n" + event + "\r\n";
}

}  // namespace

TEST_CASE(
    "read stream: an HTTP stream in pieces is its tokens and one end, then the next follows") {
  const auto piece = GENERATE(1, 7, 1000);
  Server server;
  const auto stream = SseStream::connect(server.io, server.path(),
                                         {.on_token = server.on_token(), .on_end = server.on_end()})
                          .value();
  control::Socket client = server.acceptor.accept();
  const std::string token = R"({"choices":[{"finish_reason":null,"text":"a"}]})";
  const std::string answer =
      "HTTP/1.1 200 OK\r\n\r\n" + chunk(token) + chunk(token) + chunk("[DONE]") + "0\r\n\r\n";
  for (int request = 1; request <= 2; ++request) {
    stream->send("GET");
    server.send(client, answer, static_cast<std::size_t>(piece));
    CHECK(server.tokens == 2 * request);
    CHECK(server.ends == request);
  }
  CHECK_FALSE(server.error);
  stream->send("GET");
  client.close();
  server.io.run();
  CHECK(server.ends == 3);
  REQUIRE(server.error);
  CHECK(server.error->code == Errc::ConnectionLost);
}

TEST_CASE("read stream: lines in pieces are tokens and one end, and a closed one reports nothing") {
  const auto piece = GENERATE(1, 7, 1000);
  Server server;
  const auto open = [&server] {
    return LightStream::open(server.io, server.path(), {.token = "t"},
                             {.on_token = server.on_token(), .on_end = server.on_end()})
        .value();
  };
  const std::string token = "{\"jsonrpc\":\"2.0\",\"method\":\"token.emitted\",\"params\":{}}\n";
  const std::string end =
      "{\"jsonrpc\":\"2.0\",\"method\":\"request.completed\",\"params\":" +
      wire::RequestCompleted{.request = {"r"}, .reason = "Cancelled"}.to_json().dump() + "}\n";
  const auto stream = open();
  control::Socket client = server.acceptor.accept();
  server.send(client, token + token + end, static_cast<std::size_t>(piece));
  boost::system::error_code ignored;
  boost::asio::write(client, boost::asio::buffer(token), ignored);
  server.io.poll();
  server.io.restart();
  CHECK(server.tokens == 2);
  CHECK(server.ends == 1);
  CHECK_FALSE(server.error);

  const auto closed = open();
  control::Socket other = server.acceptor.accept();
  server.send(other, token, static_cast<std::size_t>(piece));
  closed->close();
  boost::asio::write(other, boost::asio::buffer(token), ignored);
  server.io.run();
  CHECK(server.tokens == 3);
  CHECK(server.ends == 1);

  const auto broken = open();
  server.acceptor.accept().close();
  server.io.restart();
  server.io.run();
  CHECK(server.ends == 2);
  REQUIRE(server.error);
  CHECK(server.error->code == Errc::ConnectionLost);
}

TEST_CASE("bench: a line is classified by its method, not by text of the model") {
  CHECK(kind_of(R"({"jsonrpc":"2.0","method":"token.emitted","params":{"text":"a"}})") ==
        LineKind::Token);
  CHECK(kind_of(R"({"jsonrpc":"2.0","method":"request.completed","params":{"detail":""}})") ==
        LineKind::Completed);
  CHECK(kind_of(R"({"id":1,"jsonrpc":"2.0","result":{}})") == LineKind::Other);
  CHECK(
      kind_of(
          R"({"jsonrpc":"2.0","method":"request.completed","params":{"x":"\"method\":\"token.emitted\""}})") ==
      LineKind::Completed);
  CHECK(kind_of("") == LineKind::Other);
}

TEST_CASE("sse stream: events are recognised as the door writes them") {
  http::ApiRequest request;
  request.stream = true;
  const auto writer = http::answer_writer(request, "m", 0);
  CHECK(sse_kind_of(writer->add({.text = "a"}, {}).back().data) == SseKind::Token);
  CHECK(sse_kind_of(writer->add({.finish_reason = "length"}, {}).back().data) == SseKind::Other);
  CHECK(sse_kind_of(http::error_body({{Errc::LeaseRevoked, "x"}})) == SseKind::Error);
  CHECK(sse_kind_of("[DONE]") == SseKind::Done);
}

TEST_CASE("sse stream: a request has the key, the model and the number of tokens") {
  const std::string request = sse_request("k", "m", 7);
  for (const char* part : {"Bearer k\r\n", R"("model":"m")", R"("max_tokens":7)"}) {
    CAPTURE(part);
    CHECK(request.contains(part));
  }
}

TEST_CASE("bench: a counter is read from the page that a Unix socket serves") {
  const auto directory = TemporaryDirectory::create("metrics-page").value();
  const std::string path = directory.path() / "metrics.sock";
  boost::asio::io_context io;
  const auto pages =
      http::PageServer::create(
          io, {.unix_path = path, .ip = {}},
          {{.path = "/metrics", .make = [] { return http::Answer{.body = "a_total 12\n"}; }}})
          .value();
  pages->serve();
  std::jthread thread([&io] { io.run(); });

  const auto page = fetch_metrics(path);
  io.stop();
  REQUIRE(page);
  CHECK(metric_of(*page, "a_total").value() == 12);
}

TEST_CASE("bench: a counter has the name that was asked for, and a value") {
  const std::string page = "HTTP/1.1 200 OK\r\n\r\nab 1\na{x=\"y\"} 2\nb few\na 3.5\n";
  CHECK(metric_of(page, "a").value() == 3.5);
  CHECK(metric_of(page, "b").error().code == Errc::BadRequest);
  CHECK(metric_of(page, "c").error().code == Errc::BadRequest);
}

TEST_CASE("bench: a worker without a metrics page is an error") {
  CHECK(fetch_metrics("/nonexistent/metrics.sock").error().code == Errc::ConnectionLost);
}

}  // namespace leasehold::bench
