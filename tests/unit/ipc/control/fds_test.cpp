#include <fcntl.h>

#include <catch2/catch.hpp>

#include "peer_fixture.hpp"

using namespace leasehold;
using control::Payload;
using control::Responder;
using leasehold::testing::contents;
using leasehold::testing::memfd_with;
using leasehold::testing::open_fd_count;
using leasehold::testing::PeerFixture;
using leasehold::testing::PeerPairFixture;
using leasehold::testing::run_until;
using nlohmann::json;

namespace {

std::vector<UniqueFd> fds_with(std::initializer_list<std::string> texts) {
  std::vector<UniqueFd> fds;
  for (const auto& text : texts) fds.push_back(memfd_with(text));
  return fds;
}

std::string notification(std::size_t fds) {
  json line = {{"jsonrpc", "2.0"}, {"method", "n"}};
  if (fds != 0) line["fds"] = fds;
  return line.dump() + "\n";
}

/// Sends the bytes with this number of descriptors. Checks that they end the connection as
/// malformed, and that no descriptor leaks.
void check_cut_off(const std::string& bytes, std::size_t fds, control::Limits limits = {},
                   int times = 1) {
  const UniqueFd fd = memfd_with("x");
  const std::size_t before = open_fd_count();
  {
    PeerFixture bench(limits);
    for (int i = 0; i < times; ++i) bench.other->send(bytes, std::vector(fds, fd.get()));
    CHECK(bench.other->read_required()["error"]["data"]["code"] == "MalformedMessage");
    bench.run_until_closed();
    CHECK(bench.seen.closed[0].code == Errc::MalformedMessage);
    CHECK(bench.seen.notifications.empty());
  }
  CHECK(open_fd_count() == before);
}

}  // namespace

TEST_CASE("descriptors: calls, results and notifications carry them in order") {
  const std::size_t before = open_fd_count();
  {
    PeerPairFixture bench;
    bench.right_seen.on_call = [](const std::string&, Payload params, Responder respond) {
      REQUIRE(params.fds.size() == 2);
      CHECK(contents(params.fds[0]) == "one");
      CHECK(contents(params.fds[1]) == "two");
      CHECK((::fcntl(params.fds[0].get(), F_GETFD) & FD_CLOEXEC) != 0);
      respond(Payload{json::object(), fds_with({"three"})});
    };
    const auto reply = bench.ask("m", {json::object(), fds_with({"one", "two"})});
    REQUIRE(reply->fds.size() == 1);
    CHECK(contents(reply->fds[0]) == "three");
    bench.right->notify("n", {json::object(), fds_with({"four"})});
    run_until(bench.io, [&] { return !bench.left_seen.notifications.empty(); });
    CHECK(contents(bench.left_seen.notifications[0].second.fds.at(0)) == "four");
  }
  CHECK(open_fd_count() == before);
}

TEST_CASE("descriptors: each message gets its own, between plain messages of any size") {
  PeerPairFixture bench;
  const std::string big(300'000, 'x');  // several recvmsg, several writes
  for (int i = 0; i < 30; ++i) {
    const bool carries = i % 3 != 0;
    bench.left->notify("n",
                       {json{{"i", i}, {"pad", i % 7 == 0 ? big : ""}},
                        carries ? fds_with({std::to_string(i), "same"}) : std::vector<UniqueFd>{}});
  }
  auto& seen = bench.right_seen.notifications;
  run_until(bench.io, [&] { return seen.size() == 30; });
  for (int i = 0; i < 30; ++i) {
    const auto& payload = seen[static_cast<std::size_t>(i)].second;
    CHECK(payload.body["i"] == i);
    REQUIRE(payload.fds.size() == (i % 3 != 0 ? 2u : 0u));
    if (!payload.fds.empty()) CHECK(contents(payload.fds[0]) == std::to_string(i));
  }
}

TEST_CASE("descriptors: the sender refuses more than the limit") {
  PeerPairFixture bench;
  bench.right_seen.on_call = [](const std::string&, Payload params, Responder respond) {
    respond(Payload{json{{"count", params.fds.size()}}, {}});
  };
  std::vector<UniqueFd> fds(64);
  for (auto& fd : fds) fd = memfd_with("x");
  CHECK(bench.ask("m", {json::object(), std::move(fds)})->body["count"] == 64);
  std::vector<UniqueFd> more(65);
  for (auto& fd : more) fd = memfd_with("x");
  CHECK(bench.ask("m", {json::object(), std::move(more)}).error().code == Errc::MessageTooLarge);
}

TEST_CASE("descriptors: a count that does not match ends the connection") {
  check_cut_off(notification(1), 0);
  check_cut_off(notification(0), 1);
  check_cut_off(notification(1), 2);
  check_cut_off(notification(2), 1);
  check_cut_off("junk\n", 1);
}

TEST_CASE("descriptors: an invalid count, or one above the limit, ends the connection") {
  for (const std::string count : {"-1", "1.0", "\"1\"", "65", "1e30"}) {
    CAPTURE(count);
    check_cut_off(R"({"jsonrpc":"2.0","method":"n","fds":)" + count + "}\n", 1);
  }
}

TEST_CASE("descriptors: truncation by the kernel ends the connection") {
  // Six sent, four delivered: the count in the line matches, yet the connection must end.
  check_cut_off(notification(4), 6, {.max_fds = 4});
  // With an odd limit, the padding of the control buffer has room for one more than allowed.
  for (const std::size_t count : {4u, 5u, 200u})
    check_cut_off(notification(count), count, {.max_fds = 3});
}

TEST_CASE("descriptors: a peer that accepts none can accept some later, and none again") {
  PeerFixture bench({.max_fds = 0});
  const UniqueFd fd = memfd_with("x");
  bench.peer->set_limits({.max_fds = 2});
  bench.other->send(notification(2), std::vector{fd.get(), fd.get()});
  run_until(bench.io, [&] { return bench.seen.notifications.size() == 1; });
  CHECK(contents(bench.seen.notifications[0].second.fds.at(1)) == "x");

  bench.peer->set_limits({.max_fds = 0});
  bench.other->send(notification(1), std::vector{fd.get()});
  bench.run_until_closed();
  CHECK(bench.seen.closed[0].code == Errc::MalformedMessage);
}

TEST_CASE("descriptors: a line that never ends cannot accumulate them") {
  check_cut_off(" ", 3, {.max_fds = 4}, /*times=*/2);
}

TEST_CASE("descriptors: those of an unfinished line are closed with the connection") {
  const UniqueFd fd = memfd_with("x");
  const std::size_t before = open_fd_count();
  {
    PeerFixture bench;
    bench.other->send(R"({"jsonrpc")", std::vector{fd.get(), fd.get()});
    bench.io.poll();
    CHECK(open_fd_count() > before);
    bench.other->hang_up();
    bench.run_until_closed();
  }
  CHECK(open_fd_count() == before);
}

TEST_CASE("descriptors: those of an unexpected reply are closed") {
  const UniqueFd fd = memfd_with("x");
  PeerFixture bench;
  const std::size_t before = open_fd_count();
  bench.other->send_line(R"({"jsonrpc":"2.0","id":9,"result":{},"fds":1})", std::vector{fd.get()});
  bench.other->send_line(R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
  CHECK(bench.other->read_required()["id"] == 1);
  CHECK(open_fd_count() == before);
}

TEST_CASE("descriptors: unsent ones count towards the queue limit") {
  PeerFixture bench({.max_queued_bytes = 1 << 20});
  // Fills the socket, so that all later messages wait.
  bench.peer->notify("n", {json{{"x", std::string(800'000, 'x')}}, {}});
  bench.check_queue_fills([] { return Payload{json::object(), fds_with({"x"})}; });
}
