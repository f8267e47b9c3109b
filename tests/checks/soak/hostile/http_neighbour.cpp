#include "tests/checks/soak/hostile/http_neighbour.hpp"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <cstdlib>

namespace leasehold::soak {
namespace {

namespace asio = boost::asio;
using Local = asio::local::stream_protocol;

// bodies longer than 16 KiB are parsed on another thread
constexpr std::size_t kBodyBytes = 20 << 10;
constexpr Duration kPauseBetweenRequests = std::chrono::milliseconds(10);

std::string request_with(const std::string& api_key) {
  const std::string body = R"({"prompt":"a","rest":")" + std::string(kBodyBytes, 'x') + "\"}";
  return fmt::format(
      "POST /tokenize HTTP/1.1\r\nHost: w\r\nAuthorization: Bearer {}\r\nContent-Length: "
      "{}\r\n\r\n{}",
      api_key, body.size(), body);
}

/// Sends the request and returns the status of the answer, whose body is one line; 0 if the
/// connection ends.
int ask(Local::socket& socket, const std::string& request) {
  boost::system::error_code error;
  asio::write(socket, asio::buffer(request), error);
  std::string answer;
  asio::read_until(socket, asio::dynamic_buffer(answer), "}", error);
  return error || answer.size() < 12 ? 0 : std::atoi(answer.c_str() + 9);
}

}  // namespace

HttpNeighbour::HttpNeighbour(std::string socket, std::string api_key)
    : socket_(std::move(socket)), request_(request_with(api_key)), thread_([this] { run(); }) {}

HttpNeighbour::~HttpNeighbour() {
  stops_ = true;
  thread_.join();
}

void HttpNeighbour::run() {
  const SystemClock clock;
  asio::io_context io;
  while (!stops_) {
    Local::socket socket(io);
    boost::system::error_code error;
    socket.connect(Local::endpoint(socket_), error);
    for (int status = 200; !error && status == 200 && !stops_;) {
      const TimePoint from = clock.now();
      status = ask(socket, request_);
      add({.from = from, .to = clock.now(), .is_answered = status == 200});
      std::this_thread::sleep_for(kPauseBetweenRequests);
    }
    std::this_thread::sleep_for(kPauseBetweenRequests);
  }
}

void HttpNeighbour::add(const HttpRequest& done) {
  const std::scoped_lock lock(mutex_);
  requests_.push_back(done);
}

std::vector<HttpRequest> HttpNeighbour::requests() const {
  const std::scoped_lock lock(mutex_);
  return requests_;
}

}  // namespace leasehold::soak
