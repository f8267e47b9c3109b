// Pages for observers: what is answered, and what a connection may cost.
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>
#include <filesystem>
#include <thread>

#include "ipc/http/page_server.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace leasehold;
using namespace leasehold::http;
namespace asio = boost::asio;
using Local = asio::local::stream_protocol;

namespace {

class ServedPages {
 public:
  explicit ServedPages(HostRule hosts = {}) : hosts_(std::move(hosts)) {
    server_->serve();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~ServedPages() {
    io_.stop();
    thread_.join();
  }

  std::filesystem::path socket() const { return server_->listens_on(); }
  Local::socket connect() {
    Local::socket socket(client_);
    socket.connect(Local::endpoint(server_->listens_on()));
    return socket;
  }

 private:
  TemporaryDirectory directory_ = TemporaryDirectory::create("pages").value();
  asio::io_context io_;
  asio::io_context client_;
  HostRule hosts_;
  std::unique_ptr<PageServer> server_ =
      PageServer::create(io_,
                         Address{.unix_path = (directory_.path() / "http.sock").string(), .ip = {}},
                         {{.path = "/metrics",
                           .make =
                               [] {
                                 return Answer{.body = "a 1\n",
                                               .content_type = "text/plain",
                                               .extra_headers = "X-Static: yes\r\n"};
                               }}},
                         hosts_)
          .value();
  std::thread thread_;
};

void write(Local::socket& socket, const std::string& text) {
  asio::write(socket, asio::buffer(text));
}

/// Reads until the text ends with `end`, or the connection does.
std::string read_to(Local::socket& socket, const std::string& end) {
  std::string text;
  std::array<char, 512> buffer{};
  boost::system::error_code error;
  while (!error && (end.empty() || !text.ends_with(end)))
    text.append(buffer.data(), socket.read_some(asio::buffer(buffer), error));
  return text;
}

std::string ask(ServedPages& pages, const std::string& request) {
  auto socket = pages.connect();
  write(socket, request);
  socket.shutdown(Local::socket::shutdown_send);
  return read_to(socket, "");
}

}  // namespace

TEST_CASE("page server: answers GET of a page, and names what else is wrong") {
  ServedPages pages;
  const std::string found = ask(pages, "GET /metrics?x=1 HTTP/1.1\r\nHost: h\r\n\r\n");
  CHECK(found.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n"));
  CHECK(found.contains("\r\nX-Static: yes\r\n"));
  CHECK(found.ends_with("\r\n\r\na 1\n"));
  const auto status_of = [&](const std::string& request) {
    return ask(pages, request).substr(9, 3);
  };
  CHECK(status_of("GET /other HTTP/1.1\r\nHost: h\r\n\r\n") == "404");
  CHECK(status_of("POST /metrics HTTP/1.1\r\nHost: h\r\n\r\n") == "405");
  CHECK(
      ask(pages, "PUT /metrics HTTP/1.1\r\nHost: h\r\n\r\n").contains("\r\nAllow: GET, HEAD\r\n"));
  CHECK(status_of("GET /metrics HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx") == "413");
  CHECK(status_of("GET /metrics HTTP/1.1\r\n\r\n") == "400");
  CHECK(status_of("nonsense\r\n\r\n") == "400");
  CHECK(status_of("GET /metrics HTTP/1.1\r\nHost: h\r\nX: " + std::string(20'000, 'x') +
                  "\r\n\r\n") == "431");
}

TEST_CASE("page server: other users of the machine cannot open its Unix socket") {
  using enum std::filesystem::perms;
  const ServedPages pages;
  CHECK(std::filesystem::status(pages.socket()).permissions() ==
        (owner_read | owner_write | group_read | group_write));
}

TEST_CASE("page server: one connection asks again and again") {
  ServedPages pages;
  auto socket = pages.connect();
  for (int i = 0; i < 3; ++i) {
    write(socket, "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n");
    CHECK(read_to(socket, "a 1\n").starts_with("HTTP/1.1 200"));
  }
  write(socket, "GET /metrics HTTP/1.0\r\n\r\n");
  CHECK(read_to(socket, "").contains("Connection: close"));
}

TEST_CASE("page server: HEAD has the length of a page and no body, and the connection goes on") {
  ServedPages pages;
  auto socket = pages.connect();
  write(socket, "HEAD /metrics HTTP/1.1\r\nHost: h\r\n\r\n");
  const std::string head = read_to(socket, "\r\n\r\n");
  CHECK(head.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(head.contains("Content-Length: 4\r\n"));
  write(socket, "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n");
  CHECK(read_to(socket, "a 1\n").starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(ask(pages, "HEAD /other HTTP/1.1\r\nHost: h\r\n\r\n").ends_with("\r\n\r\n"));
}

TEST_CASE(
    "page server: a request for another name is refused, so that no foreign site reads a page") {
  ServedPages pages({.any = false, .names = {"Monitor.example"}});
  const auto status_of = [&](const std::string& host) {
    return ask(pages, "GET /metrics HTTP/1.1\r\nHost: " + host + "\r\n\r\n").substr(9, 3);
  };
  for (const std::string host : {"localhost", "LocalHost:8081", "127.0.0.1:8081", "[::1]:8081",
                                 "192.0.2.7", "monitor.example:1"})
    CHECK(status_of(host) == "200");
  for (const std::string host : {"evil.example", "evil.example:8081", "localhost.evil.example",
                                 "127.0.0.1.evil.example", "[", "", "[::1].evil.example:1", "1"})
    CHECK(status_of(host) == "421");
  CHECK(ask(pages, "HEAD /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n").substr(9, 3) == "421");
}

TEST_CASE("page server: the connection ends after an answer other than a page") {
  ServedPages pages;
  for (const std::string line : {"HEAD /other", "POST /metrics", "GET /other"}) {
    auto socket = pages.connect();
    write(socket, line + " HTTP/1.1\r\nHost: h\r\n\r\nGET /metrics HTTP/1.1\r\nHost: h\r\n\r\n");
    const std::string all = read_to(socket, "");
    CHECK(all.contains("Connection: close\r\n"));
    CHECK_FALSE(all.contains("a 1\n"));  // a client that ignores the body would misread it
  }
}

TEST_CASE("page server: silent connections lose their places to new ones, the oldest first") {
  ServedPages pages;
  std::vector<Local::socket> silent;
  for (std::size_t i = 0; i < PageServer::kMaxConnections; ++i) silent.push_back(pages.connect());
  CHECK(ask(pages, "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n").contains("a 1"));
  CHECK(read_to(silent.front(), "").empty());
  write(silent.back(), "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n");
  CHECK(read_to(silent.back(), "a 1\n").contains("a 1"));
}
