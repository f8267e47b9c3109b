// How many lines of one sender a peer processes per turn, and how throttling delays them.
#include <sys/socket.h>

#include <catch2/catch.hpp>

#include "peer_fixture.hpp"

using namespace leasehold;
using namespace std::chrono_literals;
using control::kTurnWeight;
using control::Peer;
using leasehold::testing::PeerFixture;
using leasehold::testing::RawSocket;
using leasehold::testing::run_until;

namespace {

const std::string kNote = R"({"jsonrpc":"2.0","method":"n"})"
                          "\n";

std::string many(const std::string& line, int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) lines += line;
  return lines;
}

}  // namespace

TEST_CASE("turns: a sender of many lines does not delay other senders") {
  boost::asio::io_context io;
  leasehold::testing::RecordedCalls loud;
  leasehold::testing::RecordedCalls quiet;
  auto [loud_socket, loud_fd] = leasehold::testing::socket_and_raw_fd(io);
  auto [quiet_socket, quiet_fd] = leasehold::testing::socket_and_raw_fd(io);
  const auto loud_peer = Peer::create(std::move(loud_socket), loud.handlers());
  const auto quiet_peer = Peer::create(std::move(quiet_socket), quiet.handlers());
  RawSocket(io, std::move(loud_fd)).send(many(kNote, 1'000));
  RawSocket(io, std::move(quiet_fd)).send(many(kNote, 1));
  loud_peer->start();
  quiet_peer->start();

  run_until(io, [&] { return !quiet.notifications.empty(); });
  CHECK(loud.notifications.size() <= 2 * kTurnWeight);

  run_until(io, [&] { return !loud.closed.empty() && !quiet.closed.empty(); });
  CHECK(loud.notifications.size() == 1'000);  // all arrive, although the sender has closed
}

TEST_CASE("turns: a long line is parsed elsewhere, meanwhile other senders are served") {
  boost::asio::io_context io, elsewhere;
  leasehold::testing::RecordedCalls loud;
  leasehold::testing::RecordedCalls quiet;
  auto [loud_socket, loud_fd] = leasehold::testing::socket_and_raw_fd(io);
  auto [quiet_socket, quiet_fd] = leasehold::testing::socket_and_raw_fd(io);
  auto handlers = loud.handlers();
  handlers.parse_long = [&](auto work) { boost::asio::post(elsewhere, std::move(work)); };
  const auto loud_peer = Peer::create(std::move(loud_socket), std::move(handlers));
  const auto quiet_peer = Peer::create(std::move(quiet_socket), quiet.handlers());
  const std::string long_note = R"({"jsonrpc":"2.0","method":"long","params":{"t":")" +
                                std::string(2 * control::kShortLineBytes, 'a') + "\"}}\n";
  RawSocket loud_end(io, std::move(loud_fd));
  loud_end.send(kNote + long_note + kNote);
  RawSocket quiet_end(io, std::move(quiet_fd));
  quiet_end.send(kNote);
  loud_peer->start();
  quiet_peer->start();

  run_until(io, [&] { return !quiet.notifications.empty() && !loud.notifications.empty(); });
  for (int i = 0; i < 100; ++i) io.poll();
  CHECK(loud.notifications.size() == 1);

  while (loud.notifications.size() < 3) {
    elsewhere.restart();
    elsewhere.poll();
    io.restart();
    io.poll();
  }
  CHECK(loud.notifications[1].first == "long");
  CHECK(loud.notifications[2].first == "n");
}

TEST_CASE("turns: a waiting line delays all later ones, and the sender's socket fills") {
  int left = 3;
  PeerFixture bench({}, [&](std::size_t) { return left-- > 0 ? 0h : 1h; });
  bench.other->send(many(kNote, 10));
  run_until(bench.io, [&] { return bench.seen.throttled.size() == 4; });
  for (int i = 0; i < 100; ++i) bench.io.poll();

  CHECK(bench.seen.notifications.size() == 3);
  CHECK(bench.seen.throttled.size() == 4);
  const std::string much(1 << 16, 'x');
  int sent = 0;  // all of it stays in the socket buffers
  while (sent < 64 && bench.other->try_send(much)) {
    ++sent;
    bench.io.poll();
  }
  CHECK(sent < 64);
}

TEST_CASE("turns: a line that waited is processed before later ones, each throttled once") {
  int number = 0;
  PeerFixture bench({}, [&](std::size_t) { return ++number % 5 == 0 ? 1ms : 0ms; });
  for (int i = 0; i < 40; ++i) {
    bench.other->send(R"({"jsonrpc":"2.0","method":"n)" + std::to_string(i) + "\"}\n");
  }
  run_until(bench.io, [&] { return bench.seen.notifications.size() == 40; });

  for (std::size_t i = 0; i < 40; ++i) {
    CHECK(bench.seen.notifications[i].first == "n" + std::to_string(i));
  }
  CHECK(bench.seen.throttled.size() == 40);
}

TEST_CASE("turns: a malformed line weighs as much as a call, a long line as many short ones") {
  PeerFixture bench({}, [](std::size_t) { return 0s; });
  bench.other->send_all("x\n" + std::string(100 * 1024, 'y') + "\n" + kNote);
  run_until(bench.io, [&] { return bench.seen.throttled.size() == 3; });
  CHECK(bench.seen.throttled == std::vector<std::size_t>{1, 101, 1});
}

TEST_CASE("turns: a sender of only malformed lines gets a last error and is disconnected") {
  PeerFixture bench({.max_malformed_lines = 8});
  bench.other->send(many("x\n", 8) + kNote + many("x\n", 100));
  for (int i = 0; i < 8 + 9; ++i) {
    CHECK(bench.other->read_required()["error"]["data"]["code"] == "MalformedMessage");
  }
  const auto last = bench.other->read_required();
  CHECK(last["error"]["message"].get<std::string>().find("more than 8 malformed lines in a row") !=
        std::string::npos);
  CHECK_FALSE(bench.other->read().has_value());
  bench.run_until_closed();
  CHECK(bench.seen.notifications.size() == 1);
}

TEST_CASE("turns: an end that reads no replies is throttled all the same") {
  PeerFixture bench({}, [](std::size_t) { return 1h; });
  ::shutdown(bench.other->fd(), SHUT_RD);
  bench.other->send(many(kNote, 100));
  run_until(bench.io, [&] { return bench.seen.throttled.size() == 1; });
  bench.peer->notify("lost", {});
  for (int i = 0; i < 100; ++i) bench.io.poll();
  CHECK(bench.seen.notifications.empty());
  CHECK(bench.seen.throttled.size() == 1);
}

TEST_CASE("turns: an end that reads no replies and sends without pause is disconnected") {
  PeerFixture bench;
  ::shutdown(bench.other->fd(), SHUT_RD);
  bench.peer->notify("lost", {});
  for (int i = 0; i < 1'000 && bench.seen.closed.empty(); ++i) {
    (void)bench.other->try_send(kNote);
    bench.io.poll();
  }
  CHECK_FALSE(bench.seen.closed.empty());
}
