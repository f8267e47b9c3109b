#include "peer_fixture.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace leasehold::testing {

using boost::asio::local::stream_protocol;
using control::Peer;
using control::Socket;

namespace {

std::pair<UniqueFd, UniqueFd> bare_pair() {
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

}  // namespace

std::pair<Socket, UniqueFd> socket_and_raw_fd(boost::asio::io_context& io) {
  auto [ours, theirs] = bare_pair();
  return {Socket(io, stream_protocol(), ours.release()), std::move(theirs)};
}

std::pair<Socket, Socket> two_sockets(boost::asio::io_context& io) {
  auto [left, right] = bare_pair();
  return {Socket(io, stream_protocol(), left.release()),
          Socket(io, stream_protocol(), right.release())};
}

void run_until(boost::asio::io_context& io, const std::function<bool()>& done) {
  io.restart();
  while (!done())
    if (io.run_one_for(std::chrono::seconds(10)) == 0) FAIL("no handler ran for ten seconds");
}

void RawSocket::send(std::string_view bytes, std::span<const int> fds) {
  iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  std::vector<std::uint64_t> control(CMSG_SPACE(fds.size_bytes()) / 8 + 1);
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  const ssize_t sent = ::sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  REQUIRE(sent == static_cast<ssize_t>(bytes.size()));
}

bool RawSocket::try_send(std::string_view bytes) {
  return ::send(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

std::size_t RawSocket::send_all(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size()) {
    const auto rest = bytes.substr(taken);
    const ssize_t sent = ::send(fd_.get(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return taken;
    if (sent > 0) taken += static_cast<std::size_t>(sent);
    io_.restart();
    io_.poll();
  }
  return taken;
}

std::optional<nlohmann::json> RawSocket::read() {
  for (;;) {
    const auto newline = arrived_.find('\n');
    if (newline != std::string::npos) {
      auto json = nlohmann::json::parse(arrived_.substr(0, newline));
      arrived_.erase(0, newline + 1);
      return json;
    }
    io_.restart();
    io_.poll();
    char bytes[4096];
    const ssize_t got = ::recv(fd_.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN)) return {};
    if (got > 0) arrived_.append(bytes, static_cast<std::size_t>(got));
    if (got < 0 && io_.run_one_for(std::chrono::seconds(10)) == 0)
      FAIL("the peer sent nothing for ten seconds");
  }
}

nlohmann::json RawSocket::read_required() {
  auto json = read();
  REQUIRE(json);
  return *json;
}

Peer::Handlers RecordedCalls::handlers() {
  Peer::Handlers handlers = {
      .on_call =
          [this](const std::string& method, control::Payload params, control::Responder respond) {
            calls.push_back(method);
            on_call(method, std::move(params), std::move(respond));
          },
      .on_notification =
          [this](const std::string& method, control::Payload params) {
            notifications.emplace_back(method, std::move(params));
          },
      .on_closed = [this](const Error& why) { closed.push_back(why); }};
  if (!throttle) return handlers;
  handlers.throttle = [this](std::size_t weight) {
    throttled.push_back(weight);
    return throttle(weight);
  };
  return handlers;
}

PeerFixture::PeerFixture(control::Limits limits, std::function<Duration(std::size_t)> throttle) {
  seen.throttle = std::move(throttle);
  auto [socket, bare] = socket_and_raw_fd(io);
  other.emplace(io, std::move(bare));
  peer = Peer::create(std::move(socket), seen.handlers(), limits);
  peer->start();
}

void PeerFixture::run_until_closed() {
  run_until(io, [&] { return !seen.closed.empty(); });
  io.poll();
  REQUIRE(seen.closed.size() == 1);
}

void PeerFixture::check_queue_fills(const std::function<control::Payload()>& next) {
  int sent = 0;
  for (; seen.closed.empty() && sent < 1000; ++sent) {
    peer->notify("n", next());
    io.restart();
    io.poll();
  }
  CHECK(sent < 300);
  run_until_closed();
  CHECK(seen.closed[0].code == Errc::QueueFull);
}

PeerPairFixture::PeerPairFixture() {
  auto [one, two] = two_sockets(io);
  left = Peer::create(std::move(one), left_seen.handlers());
  right = Peer::create(std::move(two), right_seen.handlers());
  left->start();
  right->start();
}

PeerPairFixture::~PeerPairFixture() {
  left->close();
  right->close();
  io.restart();
  io.poll();
}

Result<control::Payload> PeerPairFixture::ask(const std::string& method, control::Payload params) {
  std::optional<Result<control::Payload>> reply;
  left->call(method, std::move(params),
             [&](Result<control::Payload> result) { reply = std::move(result); });
  run_until(io, [&] { return reply.has_value(); });
  return *std::move(reply);
}

std::size_t open_fd_count() {
  const std::filesystem::directory_iterator fds("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(fds), end(fds)));
}

UniqueFd memfd_with(const std::string& text) {
  UniqueFd fd(::memfd_create("sample", MFD_CLOEXEC));
  REQUIRE(::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  return fd;
}

std::string contents(const UniqueFd& fd) {
  char bytes[256];
  const ssize_t size = ::pread(fd.get(), bytes, sizeof(bytes), 0);
  REQUIRE(size >= 0);
  return std::string(bytes, static_cast<std::size_t>(size));
}

}  // namespace leasehold::testing
