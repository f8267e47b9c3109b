// Lines that a peer's owner reads and writes itself.
#include <catch2/catch.hpp>

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
