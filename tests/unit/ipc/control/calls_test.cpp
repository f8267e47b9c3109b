#include <catch2/catch.hpp>

#include "peer_fixture.hpp"

using namespace leasehold;
using control::Payload;
using control::Responder;
using leasehold::testing::PeerFixture;
using leasehold::testing::PeerPairFixture;
using leasehold::testing::run_until;
using nlohmann::json;

namespace {

/// Stores the responder instead of answering.
auto keep_in(std::vector<Responder>& kept) {
  return [&kept](const std::string&, Payload, Responder respond) {
    kept.push_back(std::move(respond));
  };
}

/// Calls, answers with this value of `error`, and returns what the caller gets.
Error error_of_reply(const std::string& error) {
  PeerFixture bench;
  std::optional<Result<Payload>> reply;
  bench.peer->call("m", {}, [&](Result<Payload> result) { reply = std::move(result); });
  const json call = bench.other->read_required();
  bench.other->send(R"({"jsonrpc":"2.0","id":)" + call["id"].dump() + R"(,"error":)" + error +
                    "}\n");
  run_until(bench.io, [&] { return reply.has_value(); });
  REQUIRE_FALSE(*reply);
  return reply->error();
}

}  // namespace

TEST_CASE("peer: each call gets its own result, in any order of replies") {
  PeerPairFixture bench;
  std::vector<Responder> kept;
  bench.right_seen.on_call = keep_in(kept);
  std::vector<json> answers(3);
  for (std::size_t i = 0; i < 3; ++i)
    bench.left->call("m", {}, [&, i](Result<Payload> result) { answers[i] = result->body; });
  run_until(bench.io, [&] { return kept.size() == 3; });
  for (const std::size_t i : {2u, 0u, 1u}) kept[i](Payload{json{{"n", i}}, {}});
  run_until(bench.io, [&] { return !answers[0].is_null() && !answers[1].is_null(); });
  for (std::size_t i = 0; i < 3; ++i) CHECK(answers[i]["n"] == i);
}

TEST_CASE("peer: every error code arrives unchanged, with its detail and its scope") {
  const auto scope = GENERATE(FailureScope::Tenant, FailureScope::Engine);
  PeerPairFixture bench;
  for (int i = 0; i < kErrcCount; ++i) {
    const Error error{.code = static_cast<Errc>(i),
                      .detail = "because of " + std::to_string(i),
                      .scope = scope,
                      .retry_after_ms = i * 1000};
    bench.right_seen.on_call = [&](const std::string&, Payload, Responder respond) {
      respond(std::unexpected(error));
    };
    const auto reply = bench.ask("m");
    REQUIRE_FALSE(reply);
    CHECK(reply.error() == error);
  }
}

TEST_CASE("peer: an unknown method has JSON-RPC's number, other errors have -32000") {
  PeerFixture bench;
  bench.seen.on_call = [](const std::string& method, Payload, Responder respond) {
    respond(fail(method == "x" ? Errc::UnknownMethod : Errc::PoolExhausted, "no"));
  };
  bench.other->send_line(R"({"jsonrpc":"2.0","id":1,"method":"x"})");
  const json unknown = bench.other->read_required()["error"];
  CHECK(unknown["code"] == -32601);
  CHECK(unknown["data"] ==
        json{{"code", "UnknownMethod"}, {"retryable", false}, {"scope", "tenant"}});
  bench.other->send_line(R"({"jsonrpc":"2.0","id":2,"method":"y"})");
  const json full = bench.other->read_required()["error"];
  CHECK(full["code"] == -32000);
  CHECK(full["data"] == json{{"code", "PoolExhausted"}, {"retryable", true}, {"scope", "tenant"}});
}

TEST_CASE("peer: an error without a scope has the one of its code") {
  for (const auto& [data, scope] : std::vector<std::pair<std::string, FailureScope>>{
           {R"({"code":"WeightsLoading"})", FailureScope::Engine},
           {R"({"code":"LeaseFenced"})", FailureScope::Tenant},
           {R"({"code":"Draining","scope":"engine"})", FailureScope::Engine},
           {R"({"code":"Draining","scope":"planet"})", FailureScope::Tenant}}) {
    CAPTURE(data);
    CHECK(error_of_reply(R"({"code":-32000,"message":"?","data":)" + data + "}").scope == scope);
  }
}

TEST_CASE("peer: an error without a known code is read by its JSON-RPC number") {
  const std::vector<std::pair<std::string, Errc>> cases = {
      {R"({"code":-32601,"message":"?"})", Errc::UnknownMethod},
      {R"({"code":-32602,"message":"?"})", Errc::BadRequest},
      {R"({"code":5,"message":"?","data":{"code":"NoSuchCode"}})", Errc::SystemError},
      {R"({"code":"x","message":7,"data":[1]})", Errc::SystemError},
      {R"("bad")", Errc::MalformedMessage}};
  for (const auto& [error, code] : cases) {
    CAPTURE(error);
    CHECK(error_of_reply(error).code == code);
  }
}

TEST_CASE("peer: a retry time that is not an integer of at most a day is ignored") {
  for (const char* time : {"-1", "1.5", "\"1\"", "86400001", "18446744073709551616", "null"}) {
    CAPTURE(time);
    const std::string data =
        R"({"code":"RebindRateLimited","retry_after_ms":)" + std::string(time) + "}";
    CHECK(error_of_reply(R"({"code":-32000,"message":"wait","data":)" + data + "}") ==
          Error{Errc::RebindRateLimited, "wait"});
  }
}

TEST_CASE("peer: both ends may call at the same time") {
  PeerPairFixture bench;
  int answered = 0;
  for (int i = 0; i < 20; ++i) {
    for (auto* peer : {bench.left.get(), bench.right.get()})
      peer->call("m", {json{{"i", i}}, {}}, [&, i](Result<Payload> result) {
        CHECK(result->body["i"] == i);
        ++answered;
      });
  }
  run_until(bench.io, [&] { return answered == 40; });
}

TEST_CASE("peer: notifications arrive in order and are not answered") {
  PeerPairFixture bench;
  for (int i = 0; i < 5; ++i) bench.left->notify("n", {json{{"i", i}}, {}});
  bench.ask("m").value();
  REQUIRE(bench.right_seen.notifications.size() == 5);
  for (int i = 0; i < 5; ++i)
    CHECK(bench.right_seen.notifications[static_cast<std::size_t>(i)].second.body["i"] == i);
}

TEST_CASE("peer: a dropped responder answers Draining, a used one answers only once") {
  PeerPairFixture bench;
  bench.right_seen.on_call = [](const std::string&, Payload, Responder) {};
  const Error dropped = bench.ask("m").error();
  CHECK(dropped.code == Errc::Draining);
  CHECK(dropped.scope == FailureScope::Engine);
  bench.right_seen.on_call = [](const std::string&, Payload, Responder respond) {
    respond(Payload{json{{"first", true}}, {}});
    respond(fail(Errc::SystemError, "second"));
  };
  CHECK(bench.ask("m")->body == json{{"first", true}});
  CHECK(bench.ask("m")->body == json{{"first", true}});
}

TEST_CASE("peer: a call without a reply times out, and a late reply is ignored") {
  PeerPairFixture bench;
  std::vector<Responder> kept;
  bench.right_seen.on_call = keep_in(kept);
  std::vector<Errc> codes;
  bench.left->call(
      "m", {}, [&](Result<Payload> result) { codes.push_back(result.error().code); },
      std::chrono::milliseconds(1));
  run_until(bench.io, [&] { return !codes.empty() && !kept.empty(); });
  kept[0](Payload{});
  bench.right_seen.on_call = [](const std::string&, Payload, Responder respond) { respond({}); };
  bench.ask("next").value();
  CHECK(codes == std::vector{Errc::TimedOut});
}

TEST_CASE("peer: when the connection ends, pending calls fail first and on_closed comes last") {
  PeerFixture bench;
  std::vector<std::string> order;
  bench.peer->call("m", {}, [&](Result<Payload> result) {
    CHECK(result.error().code == Errc::ConnectionLost);
    CHECK(bench.seen.closed.empty());
    order.push_back("call");
  });
  bench.other->read_required();
  SECTION("because the other end closes") {
    bench.other->hang_up();
  }
  SECTION("because this end closes") {
    bench.peer->close();
  }
  CHECK(order.empty());
  bench.run_until_closed();
  CHECK(order.size() == 1);
  CHECK(bench.seen.closed[0].code == Errc::ConnectionLost);
}

TEST_CASE("peer: a call on a closed connection fails later, from the io_context") {
  PeerFixture bench;
  bench.peer->close();
  bench.run_until_closed();
  std::optional<Errc> code;
  bench.peer->call("m", {}, [&](Result<Payload> result) { code = result.error().code; });
  CHECK_FALSE(code);
  run_until(bench.io, [&] { return code.has_value(); });
  CHECK(code == Errc::ConnectionLost);
}

TEST_CASE("peer: close sends the queued lines first") {
  PeerFixture bench;
  const std::string big(900'000, 'x');  // more than a socket buffer holds
  bench.peer->notify("big", {json{{"x", big}}, {}});
  bench.peer->notify("last", {});
  bench.peer->close();
  CHECK(bench.other->read_required()["params"]["x"] == big);
  CHECK(bench.other->read_required()["method"] == "last");
  CHECK_FALSE(bench.other->read());
  bench.run_until_closed();
}

TEST_CASE("peer: lines after a close are ignored") {
  PeerFixture bench;
  bench.seen.on_call = [&](const std::string&, Payload, Responder respond) {
    respond({});
    bench.peer->close();
  };
  const std::string ping = R"({"jsonrpc":"2.0","id":1,"method":"ping"})"
                           "\n";
  bench.other->send(ping + ping);
  bench.run_until_closed();
  CHECK(bench.seen.calls.size() == 1);
}

TEST_CASE("peer: a handler may destroy the peer, and responders outlive it") {
  PeerFixture bench;
  std::vector<Responder> kept;
  bench.seen.on_call = [&](const std::string&, Payload, Responder respond) {
    kept.push_back(std::move(respond));
    bench.peer->close();
    bench.peer.reset();
  };
  bench.other->send_line(R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
  bench.run_until_closed();
  CHECK_FALSE(bench.other->read());
  kept[0](Payload{});
  kept.clear();
}

TEST_CASE("peer: an io_context may be destroyed before peers, calls and responders") {
  std::vector<Responder> kept;
  {
    boost::asio::io_context io;
    auto [one, two] = leasehold::testing::two_sockets(io);
    leasehold::testing::RecordedCalls seen;
    seen.on_call = keep_in(kept);
    const auto left = control::Peer::create(std::move(one), {});
    const auto right = control::Peer::create(std::move(two), seen.handlers());
    left->start();
    right->start();
    left->call("m", {}, [](Result<Payload>) {}, std::chrono::hours(1));
    run_until(io, [&] { return kept.size() == 1; });
  }
  kept.clear();
}

TEST_CASE("peer: a peer that does not read is disconnected and its queue freed") {
  PeerFixture bench({.max_queued_bytes = 1 << 20});
  const std::size_t fds_before = leasehold::testing::open_fd_count();
  bench.check_queue_fills([] { return Payload{json{{"x", std::string(10'000, 'x')}}, {}}; });
  CHECK(leasehold::testing::open_fd_count() < fds_before);
}

TEST_CASE("peer: a message that is longer than others accept is not sent") {
  PeerPairFixture bench;
  const json big = {{"x", std::string(control::Limits{}.max_line_bytes, 'x')}};
  CHECK(bench.ask("m", {big, {}}).error().code == Errc::MessageTooLarge);
  bench.right_seen.on_call = [&](const std::string&, Payload, Responder respond) {
    respond(Payload{big, {}});
  };
  CHECK(bench.ask("m").error().code == Errc::MessageTooLarge);
  CHECK(bench.left_seen.closed.empty());
  bench.left->notify("n", {big, {}});
  run_until(bench.io, [&] { return !bench.left_seen.closed.empty(); });
  CHECK(bench.left_seen.closed[0].code == Errc::MessageTooLarge);
}

TEST_CASE("peer: one that accepts only short lines can send long ones") {
  PeerFixture bench({.max_line_bytes = 100});
  bench.peer->notify("n", {{{"x", std::string(1'000, 'x')}}, {}});
  CHECK(bench.other->read_required()["method"] == "n");
}

TEST_CASE("peer: lines of the other end are still read after it closed") {
  PeerFixture bench;
  bench.other->send_line(R"({"jsonrpc":"2.0","method":"farewell"})");
  bench.other->hang_up();
  bench.peer->notify("n", {});  // fails at once: the other end is closed
  bench.run_until_closed();
  REQUIRE(bench.seen.notifications.size() == 1);
  CHECK(bench.seen.notifications[0].first == "farewell");
}

TEST_CASE("peer: credentials are those of the other end") {
  PeerFixture bench;
  CHECK(bench.peer->credentials().pid == ::getpid());
  CHECK(bench.peer->credentials().uid == ::getuid());
}

TEST_CASE("peer: invalid UTF-8 is sent with replacement characters") {
  PeerFixture bench;
  bench.peer->notify("n", {json{{"x", "a\xff"}}, {}});
  CHECK(bench.other->read_required()["params"]["x"] == "a\xEF\xBF\xBD");
}

TEST_CASE(
    "calls: unsent output is counted for its owner and in total until it is sent or dropped") {
  const auto total = std::make_shared<control::QueueMeter>();
  const auto owner = std::make_shared<control::QueueMeter>();
  owner->total = total;
  PeerFixture bench;
  bench.peer->notify("n", {json{{"x", std::string(900'000, 'x')}}, {}});
  bench.peer->set_queue_meter(owner);
  CHECK(owner->queued_bytes > 100'000);
  const std::size_t before = owner->queued_bytes;
  bench.peer->notify("n", {json{{"x", std::string(1'000, 'x')}}, {}});
  CHECK(owner->queued_bytes > before + 1'000);
  CHECK(owner->queued_bytes == bench.peer->queued_bytes());
  CHECK(total->queued_bytes == owner->queued_bytes);
  bench.other.reset();
  bench.run_until_closed();
  CHECK(owner->queued_bytes == 0);
  CHECK(total->queued_bytes == 0);
}
