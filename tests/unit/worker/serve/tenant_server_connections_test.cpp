// Connections that a tenant server refuses or closes: without a valid token, or with unread output.
#include <boost/asio/write.hpp>

#include "tests/unit/worker/serve/server_fixture.hpp"
#include "worker/serve/live_lease.hpp"

namespace leasehold::testing {

TEST_CASE("tenant server: before a token a connection may call nothing and send no long line") {
  ServerFixture fixture;
  const auto unauthenticated = fixture.unauthenticated();
  fixture.generate(*unauthenticated, "r");
  fixture.cancel(*unauthenticated, "r");
  run_until(fixture.io, [&] { return unauthenticated->answers.size() == 2; });
  CHECK(unauthenticated->answers.at("r").error().code == Errc::BadToken);
  CHECK(unauthenticated->answers.at("cancel r").error().code == Errc::BadToken);
  unauthenticated->answers.clear();
  fixture.generate(*unauthenticated, "long", std::string(5'000, 'a'));
  run_until(fixture.io, [&] { return fixture.server->is_closed(); });
  CHECK(fixture.parse() == 0);
}

TEST_CASE("tenant server: the error of a call that only brokers answer names the socket") {
  ServerFixture fixture;
  const auto unauthenticated = fixture.unauthenticated();
  fixture.call(*unauthenticated, "status", "status", wire::Json::object());
  run_until(fixture.io, [&] { return unauthenticated->answers.contains("status"); });
  const Error& error = unauthenticated->answers.at("status").error();
  CHECK(error.code == Errc::UnknownMethod);
  CHECK_THAT(error.detail, Catch::Contains("this socket is a worker's"));
  CHECK_THAT(std::string(error_hint(error.code)), Catch::Contains("the socket"));
}

TEST_CASE("tenant server: a client that reads no answer loses its connection, whatever it calls") {
  const auto method = GENERATE(as<std::string>(), "status", wire::ConnectionAuthenticate::kMethod,
                               wire::RequestSubmit::kMethod, wire::RequestCancel::kMethod);
  CAPTURE(method);
  ServerFixture fixture;
  control::Socket mute = *control::connect_to(fixture.io, fixture.directory / "worker");
  mute.non_blocking(true);
  std::string unsent;
  const auto send = [&](const std::string& called, const wire::Json& params) {
    const wire::Json line{
        {"jsonrpc", "2.0"}, {"id", std::string(100, 'i')}, {"method", called}, {"params", params}};
    unsent += line.dump() + "\n";
    boost::system::error_code ignored;  // no room, or closed
    unsent.erase(0, boost::asio::write(mute, boost::asio::buffer(unsent), ignored));
    fixture.io.restart();
    fixture.io.poll();
  };
  const wire::ConnectionAuthenticate token{.token = fixture.token_of("ann")};
  send(std::string(token.kMethod), token.to_json());
  std::string first(4096, '\0');
  first.resize(mute.read_some(boost::asio::buffer(first)));
  send(method, {{"request_id", "unknown"}});
  first.resize(4096);
  const std::size_t answer_bytes = mute.read_some(boost::asio::buffer(first));
  boost::asio::socket_base::send_buffer_size kernel;  // as the server's
  mute.get_option(kernel);
  const std::size_t most = (kMaxUnreadOutputBytesPerConnection + kernel.value()) / answer_bytes + 2;

  for (std::size_t call = 0; call < most && !fixture.server->is_closed(); ++call) {
    fixture.rig.clock().advance(1ms);
    send(method, {{"request_id", "unknown"}});
  }
  CHECK(fixture.server->is_closed());
}

TEST_CASE("tenant server: a wrong token gets BadToken, and its connection is closed") {
  ServerFixture fixture;
  const auto unauthenticated = fixture.unauthenticated();
  const wire::ConnectionAuthenticate guess{.token = "v1:1.1:ann:00"};
  fixture.call(*unauthenticated, "guess", std::string(guess.kMethod), guess.to_json());
  run_until(fixture.io, [&] {
    return unauthenticated->answers.contains("guess") && fixture.server->is_closed();
  });
  CHECK(unauthenticated->answers.at("guess").error().code == Errc::BadToken);
}

TEST_CASE("tenant server: the token of an ended lease gets its typed error and no place") {
  ServerFixture fixture;
  std::vector<std::unique_ptr<TestTenant>> unauthenticated;
  const auto error_of_token = [&] {
    const auto& late = unauthenticated.emplace_back(fixture.unauthenticated());
    const wire::ConnectionAuthenticate message{.token = fixture.token_of("ann")};
    fixture.call(*late, "late", std::string(message.kMethod), message.to_json());
    run_until(fixture.io,
              [&] { return late->answers.contains("late") && fixture.server->is_closed(); });
    return late->answers.at("late").error().code;
  };
  fixture.rig.revoke(fixture.lease);
  CHECK(error_of_token() == Errc::LeaseRevoked);
  fixture.rig.fence(fixture.lease);
  CHECK(error_of_token() == Errc::LeaseFenced);
}

TEST_CASE("tenant server: a token gets no place after its lease's deadline, broker or not") {
  ServerFixture fixture;
  const auto ann = fixture.tenant();
  fixture.rig.set_deadline(fixture.lease, fixture.rig.clock().now() + 1s);
  fixture.rig.clock().advance(1s);  // no broker revokes it
  fixture.generate(*ann, "r");
  fixture.wait_until_seen(*ann);
  REQUIRE(ann->answers.contains("r"));
  CHECK(ann->answers.at("r").error().code == Errc::LeaseRevoked);
  CHECK_THAT(ann->answers.at("r").error().detail, Catch::Contains("ttl_expired"));

  const auto late = fixture.unauthenticated();
  const wire::ConnectionAuthenticate message{.token = fixture.token_of("ann")};
  fixture.call(*late, "late", std::string(message.kMethod), message.to_json());
  run_until(fixture.io, [&] { return late->answers.contains("late"); });
  REQUIRE_FALSE(late->answers.at("late"));
  CHECK(late->answers.at("late").error().code == Errc::LeaseRevoked);
}

TEST_CASE("live lease: one past its deadline is not live, and one without a deadline is") {
  ServerFixture fixture;
  const TimePoint now = fixture.rig.clock().now();
  const auto live_at = [&](TimePoint at) {
    return is_live(fixture.rig.table(), fixture.lease, at);
  };
  CHECK(live_at(now + 1h));
  fixture.rig.set_deadline(fixture.lease, now + 1s);
  CHECK(live_at(now));
  CHECK_FALSE(live_at(now + 1s));
}

TEST_CASE("tenant server: a late submit on an open connection gets the typed error, unparsed") {
  ServerFixture fixture;
  const auto ann = fixture.tenant();
  fixture.rig.revoke(fixture.lease);
  fixture.generate(*ann, "r");
  run_until(fixture.io, [&] { return ann->answers.contains("r"); });
  CHECK(ann->answers.at("r").error().code == Errc::LeaseRevoked);
  fixture.rig.fence(fixture.lease);
  fixture.generate(*ann, "s");
  run_until(fixture.io, [&] { return ann->answers.contains("s"); });
  CHECK(ann->answers.at("s").error().code == Errc::LeaseFenced);
  CHECK(fixture.parse() == 0);
  fixture.lease = fixture.rig.grant("ann");
  fixture.generate(*ann, "t");
  fixture.wait_until_seen(*ann);
  CHECK(fixture.parse() == 1);
}

TEST_CASE("tenant server: a connection submits requests of its own tenant only") {
  ServerFixture fixture;
  const auto bob = fixture.tenant("bob");
  bob->name = "ann";
  fixture.generate(*bob, "r");
  run_until(fixture.io, [&] { return bob->answers.contains("r"); });
  CHECK(bob->answers.at("r").error().code == Errc::BadToken);
  CHECK_THAT(bob->answers.at("r").error().detail, Catch::Contains("belongs to tenant bob"));
}

TEST_CASE("tenant server: a stream whose client does not read ends with QueueFull, others go on") {
  ServerFixture fixture;
  const auto bob = fixture.tenant("bob");
  fixture.generate(*bob, "b");
  boost::asio::io_context reader;  // the client's own; it reads nothing before this runs
  TestTenant ann(reader, fixture.directory / "worker");
  fixture.call(ann, "authenticate", std::string(wire::ConnectionAuthenticate::kMethod),
               wire::ConnectionAuthenticate{.token = fixture.token_of("ann")}.to_json());
  fixture.generate(ann, "a");
  std::size_t parsed = 0;
  run_until(fixture.io, [&] { return (parsed += fixture.parse()) == 2; });
  constexpr std::uint32_t kTokens = 10'000;
  std::vector<SchedulerEvent> events;
  for (std::uint32_t position = 0; position < kTokens; ++position)
    events.push_back(Token{.engine_request_id = {"ann/a"}, .token = 5, .position = position});
  events.push_back(Token{.engine_request_id = {"bob/b"}, .token = 5, .position = 0});
  fixture.server->deliver(std::move(events));
  run_until(fixture.io, [&] { return !bob->seen.notifications.empty(); });
  fixture.server->deliver({Completed{.engine_request_id = {"ann/a"},
                                     .reason = CompletionReason::Cancelled,
                                     .emitted_tokens = kTokens}});
  while (!ann.has_ended()) {
    fixture.io.restart();
    fixture.io.poll();
    reader.restart();
    reader.poll();
  }
  const auto& end = ann.seen.notifications.back().second.body;
  CHECK(end.at("reason") == "QueueFull");
  CHECK_THAT(end.at("detail").get<std::string>(), Catch::Contains("read faster"));
  const auto delivered = ann.seen.notifications.size() - 1;
  CHECK(delivered < kTokens);
  CHECK(end.at("emitted_tokens") == delivered);
  CHECK(bob->seen.notifications.size() == 1);
}

}  // namespace leasehold::testing
