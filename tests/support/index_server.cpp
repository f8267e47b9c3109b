#include "tests/support/index_server.hpp"

#include <fcntl.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <future>
#include <nlohmann/json.hpp>

#include "common/expects.hpp"

namespace leasehold::testing {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr std::size_t kHugeBytes = 10'000'000;

std::string with_header(const std::string& status, const std::string& body, std::size_t length) {
  return "HTTP/1.1 " + status + "\r\nConnection: close\r\nContent-Type: application/json\r\n" +
         "Content-Length: " + std::to_string(length) + "\r\n\r\n" + body;
}

std::string with_header(const std::string& status, const std::string& body) {
  return with_header(status, body, body.size());
}

/// Asio does not set it, and a program that a test starts would keep the socket open after `stop`.
void close_on_exec(int socket) {
  ensures(::fcntl(socket, F_SETFD, FD_CLOEXEC) == 0, "a flag of an open socket can be set");
}

}  // namespace

struct IndexServer::Session : std::enable_shared_from_this<Session> {
  Session(IndexServer& from, tcp::socket connected) : server(&from), socket(std::move(connected)) {}

  void read() {
    http::async_read(socket, buffer, request,
                     [self = shared_from_this()](boost::system::error_code error, std::size_t) {
                       if (!error) self->server->reply(*self);
                     });
  }
  void write(std::string text) {
    answer = std::move(text);
    asio::async_write(socket, asio::buffer(answer),
                      [self = shared_from_this()](boost::system::error_code, std::size_t) {
                        boost::system::error_code ignored;
                        self->socket.shutdown(tcp::socket::shutdown_send, ignored);
                      });
  }

  IndexServer* server;
  tcp::socket socket;
  boost::beast::flat_buffer buffer;
  http::request<http::string_body> request;
  std::string answer;
};

IndexServer::IndexServer() {
  start();
  thread_ = std::thread([this] {
    const auto work = asio::make_work_guard(io_);
    io_.run();
  });
}

IndexServer::~IndexServer() {
  io_.stop();
  thread_.join();
}

std::string IndexServer::url(const std::string& path) const {
  return "http://127.0.0.1:" + std::to_string(port_) + path;
}

void IndexServer::run(std::function<void()> work) {
  if (!thread_.joinable()) return work();
  std::promise<void> done;
  asio::post(io_, [&] {
    work();
    done.set_value();
  });
  done.get_future().get();
}

void IndexServer::start() {
  run([this] {
    const tcp::endpoint at(asio::ip::make_address("127.0.0.1"), port_);
    acceptor_.open(at.protocol());
    close_on_exec(acceptor_.native_handle());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind(at);
    acceptor_.listen();
    port_ = acceptor_.local_endpoint().port();
    accept();
  });
}

void IndexServer::stop() {
  run([this] {
    acceptor_.close();
    held_.clear();
    const std::scoped_lock lock(mutex_);
    n_held_ = 0;
  });
}

void IndexServer::accept() {
  acceptor_.async_accept([this](boost::system::error_code error, tcp::socket socket) {
    if (error) return;
    close_on_exec(socket.native_handle());
    std::make_shared<Session>(*this, std::move(socket))->read();
    accept();
  });
}

void IndexServer::behave(IndexMode mode) {
  run([&] {
    {
      const std::scoped_lock lock(mutex_);
      mode_ = mode;
      n_held_ = 0;
    }
    const auto held = std::exchange(held_, {});
    for (const auto& session : held) reply(*session);
  });
}

void IndexServer::reply(Session& session) {
  const std::string request =
      std::string(session.request.method_string()) + " " + std::string(session.request.target());
  const std::scoped_lock lock(mutex_);
  requests_.push_back(request);
  switch (mode_) {
    case IndexMode::Answer:
      session.write(answer_to(request, session.request.body()));
      break;
    case IndexMode::Hold:
      held_.insert(session.shared_from_this());
      ++n_held_;
      break;
    case IndexMode::Drop:
      break;
    case IndexMode::Unavailable:
      session.write(with_header("503 Service Unavailable", "{}"));
      break;
    case IndexMode::Garbage:
      session.write(with_header("200 OK", "\xff{]garbage"));
      break;
    case IndexMode::Huge:
      session.write(with_header("200 OK", std::string(kHugeBytes, '[')));
      break;
    case IndexMode::Truncated:
      session.write(with_header("200 OK", "{", 100));
      break;
    case IndexMode::NotHttp:
      session.write("SSH-2.0-index\r\n\r\n");
      break;
  }
  changed_.notify_all();
}

std::string IndexServer::answer_to(const std::string& request, const std::string& body) {
  nlohmann::json answer{{"status", "success"}};
  if (request.starts_with("GET") && request.ends_with("/requests")) {
    answer["request_ids"] = ids_;
    return with_header("200 OK", answer.dump());
  }
  if (!request.starts_with("POST") || !request.ends_with("/evict"))
    return with_header("404 Not Found", "{}");
  answer["not_found"] = nlohmann::json::array();
  answer["evicted_request_ids"] = nlohmann::json::array();
  const auto asked = nlohmann::json::parse(body);
  for (const std::string id : asked.at("request_ids")) {
    ++evicted_[id];
    answer[ids_.erase(id) > 0 ? "evicted_request_ids" : "not_found"].push_back(id);
  }
  answer["removed_count"] = answer["evicted_request_ids"].size();
  return with_header("200 OK", answer.dump());
}

void IndexServer::add(const std::vector<std::string>& ids) {
  const std::scoped_lock lock(mutex_);
  ids_.insert(ids.begin(), ids.end());
}

std::set<std::string> IndexServer::ids() const {
  const std::scoped_lock lock(mutex_);
  return ids_;
}

std::map<std::string, int> IndexServer::evicted() const {
  const std::scoped_lock lock(mutex_);
  return evicted_;
}

std::vector<std::string> IndexServer::requests() const {
  const std::scoped_lock lock(mutex_);
  return requests_;
}

std::size_t IndexServer::held() const {
  const std::scoped_lock lock(mutex_);
  return n_held_;
}

bool IndexServer::wait(const std::function<bool(const IndexServer&)>& holds) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::minutes(1), [&] { return holds(*this); });
}

}  // namespace leasehold::testing
