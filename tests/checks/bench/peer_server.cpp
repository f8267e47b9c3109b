#include "tests/checks/bench/peer_server.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <optional>
#include <thread>

#include "tests/checks/bench/read_stream.hpp"

namespace leasehold::bench {
namespace {

using boost::asio::ip::tcp;

constexpr Duration kPeerStartTimeout = std::chrono::minutes(2);
constexpr Duration kAnswerTimeout = std::chrono::seconds(5);
constexpr auto kStartPause = std::chrono::milliseconds(50);
constexpr std::uint32_t kContextStep = 256;  // llama.cpp rounds the context of a slot up to it

/// Reads the status line of one answer.
class StatusCheck : public ReadStream {
 public:
  static std::shared_ptr<StatusCheck> over(StreamSocket socket) {
    std::shared_ptr<StatusCheck> check(new StatusCheck(std::move(socket)));
    check->read_more();
    if (!check->write("GET /health HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n"))
      check->is_healthy_ = false;
    return check;
  }
  /// nullopt until the answer has arrived.
  std::optional<bool> is_healthy() const { return is_healthy_; }

 private:
  explicit StatusCheck(StreamSocket socket) : ReadStream(std::move(socket)) {}
  void use(std::string& unread) override {
    if (!is_healthy_ && unread.find("\r\n") != std::string::npos)
      is_healthy_ = unread.starts_with("HTTP/1.1 200");
  }
  void lost(Error) override { is_healthy_ = is_healthy_.value_or(false); }

  std::optional<bool> is_healthy_;
};

bool is_healthy(boost::asio::io_context& io, std::uint16_t port) {
  auto socket = connect_to_port(io, port);
  if (!socket) return false;
  const auto check = StatusCheck::over(*std::move(socket));
  const SystemClock clock;
  for (const TimePoint deadline = clock.now() + kAnswerTimeout;
       !check->is_healthy() && clock.now() < deadline;) {
    io.restart();
    io.run_one_for(kStartPause);
  }
  check->close();
  io.restart();
  io.poll();
  return check->is_healthy().value_or(false);
}

std::vector<std::string> arguments_of(const PeerServerConfig& config, std::uint16_t port) {
  const std::uint32_t context =
      (config.slot_context + kContextStep - 1) / kContextStep * kContextStep;
  std::vector<std::string> arguments = {
      "-m",     config.model_path,
      "-np",    std::to_string(config.slots),
      "-c",     std::to_string(std::uint64_t{context} * config.slots),
      "--host", "127.0.0.1",
      "--port", std::to_string(port)};
  if (config.threads > 0) arguments.insert(arguments.end(), {"-t", std::to_string(config.threads)});
  return arguments;
}

}  // namespace

Result<std::uint16_t> free_port(boost::asio::io_context& io) {
  boost::system::error_code failed;
  tcp::acceptor acceptor(io);
  acceptor.open(tcp::v4(), failed);
  if (!failed) acceptor.bind({boost::asio::ip::address_v4::loopback(), 0}, failed);
  if (failed) return fail(Errc::SystemError, "no free port on 127.0.0.1: " + failed.message());
  return acceptor.local_endpoint().port();
}

Result<PeerServer> PeerServer::start(boost::asio::io_context& io, const PeerPrograms& programs,
                                     const PeerServerConfig& config) {
  const std::uint16_t port = TRY(free_port(io));
  std::vector<std::string> arguments = arguments_of(config, port);
  std::string command = fmt::format("{} {}", kPeerServer, fmt::join(arguments, " "));
  Child child = TRY(programs.starter().start(kPeerServer, {.arguments = std::move(arguments)}));
  PeerServer server(std::move(child), port, std::move(command));
  TRY(server.await_health(io, programs));
  return server;
}

Result<void> PeerServer::await_health(boost::asio::io_context& io, const PeerPrograms& programs) {
  const SystemClock clock;
  for (const TimePoint deadline = clock.now() + kPeerStartTimeout; clock.now() < deadline;) {
    const bool answers = is_healthy(io, port_);  // perhaps another program that took the port
    if (const auto status = child_.status())
      return fail(Errc::ConnectionLost, fmt::format("{} ended with {}; {}", kPeerServer, *status,
                                                    programs.starter().end_of_log(kPeerServer)));
    if (answers) return {};
    std::this_thread::sleep_for(kStartPause);
  }
  return fail(Errc::TimedOut, fmt::format("{} is not ready after two minutes; {}", kPeerServer,
                                          programs.starter().end_of_log(kPeerServer)));
}

}  // namespace leasehold::bench
