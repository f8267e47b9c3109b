#include "tests/unit/ipc/etcd/modelled_member.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/write.hpp>

namespace leasehold::testing {

std::string reply_of(int status, const std::string& body) {
  return fmt::format(
      "HTTP/1.1 {} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", status,
      body.size(), body);
}

std::string reply_200(const std::string& body) {
  return reply_of(200, body);
}

std::string stream_of(const std::vector<std::string>& lines) {
  std::string text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& line : lines)
    text += fmt::format("{:x}\r\n{}\n\r\n", line.size() + 1, line);
  return text;
}

ModelledMember::ModelledMember(Answer answer) : answer_(std::move(answer)) {
  threads_.emplace_back([this] { accept(); });
}

ModelledMember::~ModelledMember() {
  {
    const std::scoped_lock lock(mutex_);
    is_stopped_ = true;
  }
  ::shutdown(acceptor_.native_handle(), SHUT_RDWR);
  threads_.front().join();
  cut();
  for (std::size_t i = 1; i < threads_.size(); ++i) threads_[i].join();
}

void ModelledMember::cut() {
  const std::scoped_lock lock(mutex_);
  for (const auto& socket : sockets_) ::shutdown(socket->native_handle(), SHUT_RDWR);
}

void ModelledMember::accept() {
  while (true) {
    const auto socket = std::make_shared<Local::socket>(io_);
    boost::system::error_code error;
    acceptor_.accept(*socket, error);
    const std::scoped_lock lock(mutex_);
    if (error || is_stopped_) return;
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket] { serve(*socket); });
  }
}

void ModelledMember::serve(Local::socket& socket) {
  std::string text;
  std::array<char, 4096> part{};
  while (true) {
    boost::system::error_code error;
    const std::size_t head_end = text.find("\r\n\r\n");
    if (head_end != std::string::npos) {
      const std::size_t at = text.find("Content-Length: ") + 16;
      const std::size_t size = std::stoul(text.substr(at));
      if (text.size() >= head_end + 4 + size) {
        const Request request{.head = text.substr(0, head_end + 2),
                              .body = text.substr(head_end + 4, size)};
        text.erase(0, head_end + 4 + size);
        {
          const std::scoped_lock lock(mutex_);
          requests_.push_back(request);
        }
        const std::string answer = answer_(request);
        if (!answer.empty()) boost::asio::write(socket, boost::asio::buffer(answer), error);
        if (answer.empty() || error) return (void)::shutdown(socket.native_handle(), SHUT_RDWR);
        continue;
      }
    }
    text.append(part.data(), socket.read_some(boost::asio::buffer(part), error));
    if (error) return;
  }
}

std::vector<ModelledMember::Request> ModelledMember::requests() const {
  const std::scoped_lock lock(mutex_);
  return requests_;
}

std::size_t ModelledMember::count(const std::string& path) const {
  const auto all = requests();
  return static_cast<std::size_t>(
      std::ranges::count_if(all, [&](const Request& request) { return request.is(path); }));
}

}  // namespace leasehold::testing
