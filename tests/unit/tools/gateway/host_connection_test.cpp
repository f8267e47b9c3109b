// A connection to a host whose bytes the test gives.
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <deque>
#include <memory>
#include <string>

#include "ipc/etcd/wait_for.hpp"
#include "tools/gateway/host_connection.hpp"

using namespace leasehold;
using namespace leasehold::gateway;

namespace {

namespace asio = boost::asio;

/// Each read gives one piece; then the connection ends.
class ScriptedStream final : public http::ByteStream {
 public:
  explicit ScriptedStream(std::deque<std::string>& pieces) : pieces_(pieces) {}

  asio::awaitable<http::Transfer> read_some(asio::mutable_buffer buffer) override {
    if (pieces_.empty()) co_return http::Transfer{asio::error::eof, 0};
    const std::string piece = std::move(pieces_.front());
    pieces_.pop_front();
    co_return http::Transfer{{}, asio::buffer_copy(buffer, asio::buffer(piece))};
  }
  asio::awaitable<http::Transfer> write(asio::const_buffer bytes) override {
    co_return http::Transfer{{}, bytes.size()};
  }
  void expires_after(std::chrono::steady_clock::duration) override {}
  void expires_never() override {}
  void close() override {}

 private:
  std::deque<std::string>& pieces_;
};

struct Scripted {
  std::deque<std::string> pieces;
  asio::io_context io;
  HostConnection connection{std::make_unique<ScriptedStream>(pieces), "h", {}};

  int head() {
    const auto read = etcd::wait_for(io, connection.read_head(true, std::nullopt));
    REQUIRE(read);
    return read->status;
  }
  /// The error of the next read.
  std::string body_error() {
    const auto piece = etcd::wait_for(io, connection.read_body(std::nullopt));
    REQUIRE_FALSE(piece);
    return piece.error().detail;
  }
  std::string body() {
    auto piece = etcd::wait_for(io, connection.read_body(std::nullopt));
    REQUIRE(piece);
    return *std::move(piece);
  }
};

const std::string kChunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

}  // namespace

TEST_CASE("host connection: a chunk is taken before the host sends the next one") {
  Scripted host;
  host.pieces = {kChunkedHead, "3\r\none\r\n", "3\r\ntwo\r\n", "0\r\n\r\n"};
  CHECK(host.head() == 200);
  CHECK(host.body() == "one");
  CHECK(host.pieces.size() == 2);
  CHECK(host.body() == "two");
  CHECK(host.pieces.size() == 1);
  CHECK(host.body().empty());
  CHECK(host.connection.is_reusable());
}

TEST_CASE("host connection: a chunk that arrives with the head is taken before the next one") {
  Scripted host;
  host.pieces = {kChunkedHead + "3\r\none\r\n", "3\r\ntwo\r\n0\r\n\r\n"};
  CHECK(host.head() == 200);
  CHECK(host.body() == "one");
  CHECK(host.pieces.size() == 1);
  CHECK(host.body() == "two");
  CHECK(host.body().empty());
}

TEST_CASE("host connection: chunks that arrive together are one piece") {
  Scripted host;
  host.pieces = {kChunkedHead, "3\r\none\r\n3\r\ntwo\r\n5\r\nth", "ree\r\n0\r\n\r\n"};
  CHECK(host.head() == 200);
  CHECK(host.body() == "onetwoth");
  CHECK(host.body() == "ree");
  CHECK(host.body().empty());
}

TEST_CASE("host connection: an early end says how much of the answer had arrived") {
  Scripted chunked;
  chunked.pieces = {kChunkedHead, "3\r\none\r\n"};
  CHECK(chunked.head() == 200);
  CHECK(chunked.body() == "one");
  CHECK(chunked.body_error() ==
        "host h: the connection ended after 3 bytes of the body, before its end");
  Scripted counted;
  counted.pieces = {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", "four"};
  CHECK(counted.head() == 200);
  CHECK(counted.body() == "four");
  CHECK(counted.body_error() == "host h: the connection ended after 4 of 10 bytes of the body");
  Scripted headless;
  headless.pieces = {"HTTP/1.1 200 OK\r\n"};
  const auto head = etcd::wait_for(headless.io, headless.connection.read_head(true, std::nullopt));
  REQUIRE_FALSE(head);
  CHECK(head.error().detail == "host h: the connection ended within the head");
}
