// Lines that a peer's owner reads and writes itself.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>

#include "ipc/control/transport/send_batch.hpp"
#include "peer_fixture.hpp"

using namespace leasehold;
using control::Limits;
using control::Peer;
using leasehold::testing::memfd_with;
using leasehold::testing::PeerFixture;
using leasehold::testing::RawSocket;
using leasehold::testing::run_until;
using nlohmann::json;

namespace {

const std::string kOther = R"({"jsonrpc":"2.0","method":"a"})";

/// A peer whose owner takes the line "mine".
struct TakingPeer {
  explicit TakingPeer(Limits limits = {}) {
    auto [socket, fd] = leasehold::testing::socket_and_raw_fd(io);
    Peer::Handlers handlers = seen.handlers();
    handlers.on_line = [this](std::string_view line) {
      offered.emplace_back(line);
      return line == "mine";
    };
    peer = Peer::create(std::move(socket), std::move(handlers), limits);
    other.emplace(io, std::move(fd));
    peer->start();
  }

  boost::asio::io_context io;
  leasehold::testing::RecordedCalls seen;
  std::vector<std::string> offered;
  std::shared_ptr<Peer> peer;
  std::optional<RawSocket> other;
};

}  // namespace

TEST_CASE("lines: one that its owner takes is not parsed, and none with descriptors is offered") {
  TakingPeer taking;
  const UniqueFd sent = memfd_with("x");
  const int fds[] = {sent.get()};
  taking.other->send_line("mine");
  taking.other->send_line(kOther);
  taking.other->send_line(R"({"jsonrpc":"2.0","method":"b","fds":1})", fds);
  run_until(taking.io, [&] { return taking.seen.notifications.size() == 2; });
  CHECK(taking.offered == std::vector<std::string>{"mine", kOther});
  CHECK(taking.seen.notifications[1].second.fds.size() == 1);
  CHECK(taking.seen.closed.empty());
}

TEST_CASE("lines: one that its owner takes ends a row of malformed ones") {
  TakingPeer taking({.max_malformed_lines = 1});
  for (const char* line : {"x", "mine", "x"}) taking.other->send_line(line);
  taking.other->send_line(kOther);
  run_until(taking.io,
            [&] { return !taking.seen.notifications.empty() || !taking.seen.closed.empty(); });
  CHECK(taking.seen.notifications.size() == 1);
  CHECK(taking.seen.closed.empty());
}

TEST_CASE("lines: a whole notification is sent as it is, and one that is too long ends all") {
  PeerFixture bench;
  bench.peer->notify_line("{\"a\":1}\n");
  CHECK(bench.other->read_required() == json{{"a", 1}});
  bench.peer->notify_line(json(std::string(1 << 20, 'x')).dump() + "\n");
  CHECK_FALSE(bench.other->read());
  bench.run_until_closed();
  CHECK(bench.seen.closed[0].code == Errc::MessageTooLarge);
}

TEST_CASE("lines: those of a batch are sent together when it ends") {
  TakingPeer taking;
  std::array<char, 4096> bytes{};
  const auto arrived = [&](int flags) {
    return ::recv(taking.other->fd(), bytes.data(), bytes.size(), MSG_DONTWAIT | flags);
  };
  {
    const control::SendBatch batch;
    const control::SendBatch inner;
    taking.peer->notify("a", {});
    taking.peer->notify("b", {});
    CHECK(arrived(MSG_PEEK) < 0);
  }
  const ssize_t size_bytes = arrived(0);
  REQUIRE(size_bytes > 0);
  CHECK(std::count(bytes.begin(), bytes.begin() + size_bytes, '\n') == 2);
}

TEST_CASE("lines: a batch keeps the order of lines with and without descriptors") {
  TakingPeer taking;
  {
    const control::SendBatch batch;
    taking.peer->notify("a", {});
    std::vector<UniqueFd> fds;
    fds.push_back(memfd_with("x"));
    taking.peer->notify("b", {.body = json::object(), .fds = std::move(fds)});
    taking.peer->notify("c", {});
  }
  for (const char* method : {"a", "b", "c"})
    CHECK(taking.other->read_required().at("method") == method);
}

TEST_CASE("lines: those of a batch arrive although the connection is closed at once") {
  TakingPeer taking;
  {
    const control::SendBatch batch;
    taking.peer->notify("a", {});
    taking.peer->close_now();
  }
  CHECK(taking.other->read_required().at("method") == "a");
  CHECK_FALSE(taking.other->read());
}

TEST_CASE("lines: a batch that holds much of one peer is sent before it ends") {
  TakingPeer taking;
  const control::SendBatch batch;
  taking.peer->notify("a", {.body = {{"text", std::string(100'000, 'x')}}, .fds = {}});
  char byte = 0;
  CHECK(::recv(taking.other->fd(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 1);
}
