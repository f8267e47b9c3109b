/// A worker's HTTP server on a Unix socket, with a broker that the test plays, and a client of it.
#pragma once

#include <unistd.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/temporary_directory.hpp"
#include "tests/support/tiny_tokenizer.hpp"
#include "worker/http/http_server.hpp"

namespace leasehold::http::server_case {

namespace asio = boost::asio;
using Local = asio::local::stream_protocol;

/// One connection. Reads wait.
class Client {
 public:
  explicit Client(const std::string& path) { socket_.connect(Local::endpoint(path)); }
  void write(const std::string& text) {
    boost::system::error_code ignored;
    asio::write(socket_, asio::buffer(text), ignored);
  }
  /// The next head, and as much of a body as it declares; less when the connection ends.
  std::string reply(bool has_body = true) {
    std::string text;
    const auto end = [&] { return text.find("\r\n\r\n"); };
    while (end() == std::string::npos && read_some(text)) continue;
    const auto at = text.find("Content-Length: ");
    if (!has_body || at == std::string::npos || end() == std::string::npos) return text;
    const std::size_t size = end() + 4 + std::stoul(text.substr(at + 16));
    while (text.size() < size && read_some(text)) continue;
    is_whole_ = text.size() == size;
    return text;
  }
  /// True when the last reply with a body was read to its end.
  bool is_whole() const { return is_whole_; }
  bool has_input() { return socket_.available() > 0; }
  void shut_down_sending() { socket_.shutdown(Local::socket::shutdown_send); }

 private:
  bool read_some(std::string& text) {
    std::array<char, 4096> bytes{};
    boost::system::error_code error;
    text.append(bytes.data(), socket_.read_some(asio::buffer(bytes), error));
    return !error;
  }
  asio::io_context io_;
  Local::socket socket_{io_};
  bool is_whole_ = false;
};

/// "ann" and "bob" are valid keys of tenants with their names; "cy" is one with a moved text only.
class TestServer {
 public:
  explicit TestServer(Server::Dependencies more = {}) {
    more.io = &io_;
    more.clock = &clock_;
    more.tokenizer = &tokenizer_;
    more.health = &health;
    more.model = {.name = "model",
                  .aliases = {"alias"},
                  .text_identity = "sha256:00/int8/f16/3",
                  .max_context = 256};
    more.stopping = {Errc::Draining, "the worker stops"};
    more.check_key = [this](const wire::KeyCheck& asked, const std::optional<HostName>& from,
                            Server::OnChecked done) {
      ++checks;
      const std::string& key = asked.api_key;
      const bool is_known = key == "ann" || key == "bob" || (key == "cy" && from);
      if (is_known) return done(wire::KeyOwner{.key = {key}, .tenant = {key}});
      done(fail(Errc::BadToken, "no such key"));
    };
    server_ = Server::create({.unix_path = path_, .ip = {}}, std::move(more)).value();
    server_->serve();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~TestServer() {
    io_.stop();
    thread_.join();
  }

  std::string ask(const std::string& request, bool has_body = true) {
    Client client(path_);
    client.write(request);
    return client.reply(has_body);
  }
  const std::string& path() const { return path_; }
  Server& server() { return *server_; }

  Health health;
  std::atomic<int> checks = 0;

 private:
  TemporaryDirectory directory_ = TemporaryDirectory::create("http").value();
  const std::string path_ = (directory_.path() / "http.sock").string();
  asio::io_context io_;
  SystemClock clock_;
  const Tokenizer tokenizer_ = testing::tiny_tokenizer();
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

inline std::string request(const std::string& method, const std::string& path,
                           const std::string& more, const std::string& body = {}) {
  std::string text = method + " " + path + " HTTP/1.1\r\nHost: h\r\n" + more;
  if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return text + "\r\n" + body;
}

inline std::string as(const std::string& key) {
  return "Authorization: Bearer " + key + "\r\n";
}

inline std::string status_of(const std::string& reply) {
  return reply.size() < 12 ? reply : reply.substr(9, 3);
}

inline const std::string kHealth = request("GET", "/health", "");

inline TrustedProxies trusting_own_user() {
  const std::string users[] = {"uid:" + std::to_string(::getuid())};
  return TrustedProxies::parse(users).value();
}

inline nlohmann::json body_of(const std::string& reply) {
  return nlohmann::json::parse(reply.substr(reply.find("\r\n\r\n")));
}

}  // namespace leasehold::http::server_case
