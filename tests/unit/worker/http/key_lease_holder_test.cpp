// Sessions that share the lease of their API key, against a scripted broker and worker.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <deque>

#include "tests/unit/ipc/client/fake_world.hpp"
#include "worker/http/generations.hpp"
#include "worker/http/keys/key_lease_holder.hpp"

namespace leasehold::http {
namespace {

using client::TenantSession;

constexpr Duration kIdle = std::chrono::seconds(30);

struct Stream {
  std::string id;
  std::shared_ptr<TenantSession> session;
  std::vector<client::SessionEvent> events;

  template <class Kind>
  std::vector<Kind> reported() const {
    std::vector<Kind> found;
    for (const auto& event : events)
      if (const auto* kind = std::get_if<Kind>(&event)) found.push_back(*kind);
    return found;
  }
};

/// Its leases are 1.1, 1.2 … of 3 s.
struct KeysWorld : client::World {
  explicit KeysWorld(Duration idle_ttl = kIdle)
      : leases(KeyLeaseHolder::create(io, timers, directory / "broker.sock", idle_ttl)) {}

  client::SessionConfig config_of(const std::string& key, const std::string& id) {
    client::SessionConfig config{
        .broker_path = directory / "broker.sock", .tenant = {"A"}, .rebind = true};
    config.request = request;
    config.request.request_id = {id};
    config.lease = leases->share({key}, {id});
    return config;
  }
  Stream& start(const std::string& key = "k1") {
    Stream& stream = streams.emplace_back();
    stream.id = fmt::format("req-{}", streams.size());
    stream.session = TenantSession::create(
        io, timers, config_of(key, stream.id),
        [&stream](const client::SessionEvent& event) { stream.events.push_back(event); });
    stream.session->start();
    return stream;
  }
  bool all_stream() const {
    return std::ranges::all_of(streams, [](const Stream& stream) {
      return stream.session->state() == TenantSession::State::Streaming;
    });
  }
  void start_streams(int count) {
    for (int i = 0; i < count; ++i) start();
    run_until([this] { return all_stream(); });
  }
  void emit(const Stream& stream, std::uint32_t position) {
    worker.notify_submitter("token.emitted", wire::TokenEmitted{.request = {stream.id},
                                                                .token = client::token_at(position),
                                                                .position = position}
                                                 .to_json());
  }
  void complete(const Stream& stream, const std::string& reason, LeaseId lease = {}) {
    wire::RequestCompleted end{.request = {stream.id}, .reason = reason, .scope = "tenant"};
    end.emitted_tokens = static_cast<std::uint32_t>(stream.session->tokens().size());
    if (reason == "Revoked") {
      end.lease = lease;
      end.revoke_reason = "operator";
    }
    worker.notify_submitter("request.completed", end.to_json());
  }
  /// Completes the stream, and waits for the end of its session.
  void finish(const Stream& stream) {
    complete(stream, "MaxTokensReached");
    await_end(stream);
  }
  void await_end(const Stream& stream) {
    run_until([&stream] { return !stream.reported<client::Ended>().empty(); });
  }
  void await_streaming(const Stream& stream) {
    run_until([&stream] { return stream.session->state() == TenantSession::State::Streaming; });
  }
  /// Waits for the release of one lease in all, and its reply.
  void await_release() {
    run_until([this] { return calls("lease.release") == 1; });
    settle();
  }
  /// The first stream's client leaves it, and its lease is kept for a minute.
  void leave_first() {
    leases->keep({"k1"}, {"req-1"}, std::chrono::seconds(60));
    streams.front().session->leave();
  }
  /// The worker refuses the next submission, because the lease drains.
  void refuse_next_as_draining() {
    auto& submits = worker.answers["request.submit"];
    submits = {fail(Errc::Draining, "the lease drains"), submits.front()};
  }
  /// Lets retries happen, within two seconds of the manual clock.
  void advance_until(const std::function<bool()>& holds) {
    for (int i = 0; i < 200 && !holds(); ++i) {
      settle();
      timers.advance(std::chrono::milliseconds(10));
    }
    settle();
    REQUIRE(holds());
  }
  std::size_t calls(const std::string& method) const { return broker.calls(method).size(); }

  std::shared_ptr<KeyLeaseHolder> leases;
  std::deque<Stream> streams;
};

}  // namespace

TEST_CASE("key lease: all requests of a key submit under one lease, a request after them too") {
  KeysWorld world;
  world.start_streams(3);
  CHECK(world.calls("lease.acquire") == 1);
  for (Stream& stream : world.streams) world.complete(stream, "MaxTokensReached");
  world.await_end(world.streams.back());
  Stream& late = world.start();
  world.await_streaming(late);
  CHECK(world.calls("lease.acquire") == 1);
  CHECK(world.calls("lease.release") == 0);
  CHECK(late.reported<client::Submitted>().front().lease == LeaseId{1, 1});
}

TEST_CASE("key lease: it is renewed while it is idle, and released when its time is over") {
  KeysWorld world;
  world.start_streams(1);
  world.finish(world.streams.front());
  world.timers.advance(std::chrono::seconds(29));
  world.settle();
  CHECK(world.calls("lease.renew") >= 1);
  CHECK(world.calls("lease.release") == 0);
  world.timers.advance(std::chrono::seconds(1));
  world.run_until([&] { return world.calls("lease.release") == 1; });
  world.settle();
  Stream& late = world.start();
  world.await_streaming(late);
  CHECK(world.calls("lease.acquire") == 2);
  CHECK_FALSE(world.broker.calls("lease.acquire").back().contains("replaces"));
}

TEST_CASE("key lease: its end is followed by one acquisition, and every text goes on") {
  KeysWorld world;
  world.start_streams(3);
  for (Stream& stream : world.streams)
    for (std::uint32_t position = 0; position < 4; ++position) world.emit(stream, position);
  world.run_until([&] { return world.streams.back().session->tokens().size() == 4; });
  world.broker.held = "lease.acquire";
  for (Stream& stream : world.streams) world.complete(stream, "Revoked", {1, 1});
  world.advance_until([&] { return world.calls("lease.acquire") == 2; });
  world.settle();
  world.broker.answer_held();
  world.run_until([&] { return world.worker.calls("request.submit").size() == 6; });
  world.run_until([&] { return world.all_stream(); });
  CHECK(world.calls("lease.acquire") == 2);
  CHECK(world.broker.calls("lease.acquire").back().at("replaces").dump().contains('1'));
  for (Stream& stream : world.streams) {
    world.emit(stream, 4);
    world.run_until([&] { return stream.session->tokens().size() == 5; });
    const auto rebound = stream.reported<client::Rebound>();
    REQUIRE(rebound.size() == 1);
    CHECK(rebound.front().old_lease == LeaseId{1, 1});
    CHECK(rebound.front().new_lease == LeaseId{1, 2});
    CHECK(rebound.front().delivered_tokens == 4);
  }
}

TEST_CASE("key lease: a refusal ends all requests that waited, after one call") {
  KeysWorld world;
  world.broker.answers["lease.acquire"] = {fail(Errc::BadToken, "the key was revoked")};
  for (int i = 0; i < 3; ++i) world.start();
  for (Stream& stream : world.streams) {
    world.await_end(stream);
    CHECK(stream.reported<client::Ended>().front().error->code == Errc::BadToken);
  }
  CHECK(world.calls("lease.acquire") == 1);
}

TEST_CASE("key lease: a refusal leaves no connection at the broker, however often it is repeated") {
  KeysWorld world;
  auto& grants = world.broker.answers["lease.acquire"];
  const Error refusal{.code = Errc::CellLost, .detail = "out of its cell", .retry_after_ms = 200};
  grants.insert(grants.begin() + 1, 3, std::unexpected(refusal));
  world.start_streams(1);
  world.complete(world.streams.front(), "Revoked", {1, 1});
  world.advance_until([&] { return world.calls("lease.acquire") == 5 && world.all_stream(); });
  CHECK(world.broker.open_connections() == 1);
}

TEST_CASE("key lease: an idle lease of the tenant gives way to another key") {
  KeysWorld world;
  auto& grants = world.broker.answers["lease.acquire"];
  grants.insert(grants.begin() + 1, fail(Errc::QuotaBlocks, "too many blocks"));
  world.start_streams(1);
  world.finish(world.streams.front());
  Stream& other = world.start("k2");
  world.run_until([&] { return world.calls("lease.release") == 1; });
  world.timers.advance(std::chrono::milliseconds(20));
  world.await_streaming(other);
  CHECK(world.calls("lease.acquire") == 3);
}

TEST_CASE("key lease: blocks that no idle lease has are refused at once") {
  KeysWorld world;
  auto& grants = world.broker.answers["lease.acquire"];
  grants.insert(grants.begin() + 1, fail(Errc::QuotaBlocks, "too many blocks"));
  world.start_streams(1);
  Stream& other = world.start("k2");
  world.await_end(other);
  CHECK(other.reported<client::Ended>().front().error->code == Errc::QuotaBlocks);
  CHECK(world.calls("lease.release") == 0);
  CHECK(world.streams.front().session->state() == TenantSession::State::Streaming);
}

TEST_CASE("key lease: a broker that restarted may not know this worker for a moment") {
  KeysWorld world;
  world.broker.answers["lease.acquire"].push_front(
      fail(Errc::UnknownWorker, "no worker w1 is attached"));
  Stream& stream = world.start();
  world.run_until([&] { return !stream.reported<client::Retrying>().empty(); });
  CHECK(stream.reported<client::Retrying>().front().error.code == Errc::BrokerLost);
  world.timers.advance(std::chrono::milliseconds(50));
  world.await_streaming(stream);
  CHECK(world.calls("lease.acquire") == 2);
}

TEST_CASE("key lease: a lease that drains is replaced once, and released when all have moved") {
  KeysWorld world;
  auto& grants = world.broker.answers["lease.acquire"];
  world.broker.answers["lease.replace"] = {grants[1]};
  world.worker.answers["request.move"] = {
      wire::RequestMoved{.request = {"any"}, .lease = {1, 2}, .blocks = 1}.to_json()};
  world.start_streams(2);
  world.worker.held = "request.move";
  world.broker.notify("lease.draining", wire::LeaseDraining{.lease = {1, 1}}.to_json());
  world.run_until([&] { return world.worker.calls("request.move").size() == 2; });
  CHECK(world.calls("lease.replace") == 1);
  CHECK(world.calls("lease.release") == 0);
  world.worker.answer_held();
  world.run_until([&] { return world.calls("lease.release") == 1; });
  CHECK(world.broker.calls("lease.release").front().at("lease").dump() ==
        wire::LeaseRelease{.lease = {1, 1}}.to_json().at("lease").dump());
  for (const Stream& stream : world.streams) CHECK(stream.reported<client::Rebound>().size() == 1);
  Stream& late = world.start();
  world.await_streaming(late);
  CHECK(late.reported<client::Submitted>().front().lease == LeaseId{1, 2});
  CHECK(world.calls("lease.acquire") == 1);
}

TEST_CASE("key lease: a request that a draining lease refuses gets another, the others go on") {
  KeysWorld world;
  world.start_streams(1);
  world.refuse_next_as_draining();
  Stream& refused = world.start();
  world.advance_until([&] { return refused.session->state() == TenantSession::State::Streaming; });
  CHECK(refused.reported<client::Submitted>().front().lease == LeaseId{1, 2});
  CHECK(world.calls("lease.release") == 0);
  CHECK(world.streams.front().session->state() == TenantSession::State::Streaming);
  world.complete(world.streams.front(), "MaxTokensReached");
  world.await_release();  // nothing uses it again
}

TEST_CASE("key lease: a request that is left keeps the draining lease that it runs under") {
  KeysWorld world(Duration::zero());
  world.request.resumable = true;
  world.start_streams(1);
  world.refuse_next_as_draining();
  Stream& other = world.start();  // gets the key's next lease
  world.advance_until([&] { return other.session->state() == TenantSession::State::Streaming; });
  world.leave_first();
  world.settle();
  CHECK(world.calls("lease.release") == 0);
  world.leases->finished({"A"}, {"req-1"});
  world.run_until([&] { return world.calls("lease.release") == 1; });
  CHECK(world.broker.calls("lease.release").front().at("lease").dump() ==
        wire::LeaseRelease{.lease = {1, 1}}.to_json().at("lease").dump());
  world.settle();  // the reply
}

TEST_CASE("key lease: a lost connection to the worker costs one request no lease of the others") {
  KeysWorld world;
  world.start_streams(2);
  world.worker.drop_connections();
  world.advance_until([&] { return world.worker.calls("request.submit").size() == 4; });
  CHECK(world.calls("lease.acquire") == 1);
  CHECK(world.calls("lease.release") == 0);
}

TEST_CASE("key lease: the revocation of an idle lease ends it, and the next request gets another") {
  KeysWorld world;
  world.start_streams(1);
  world.finish(world.streams.front());
  world.broker.notify(
      "lease.revoked",
      wire::LeaseRevoked{.lease = {1, 1}, .reason = RevokeReason::Operator}.to_json());
  world.run_until([&] { return world.calls("lease.release") == 1; });
  Stream& late = world.start();
  world.await_streaming(late);
  CHECK(late.reported<client::Submitted>().front().lease == LeaseId{1, 2});
}

TEST_CASE("key lease: a session that leaves its request cancels nothing, and the lease is kept") {
  KeysWorld world(Duration::zero());
  world.request.resumable = true;
  world.start_streams(1);
  world.leave_first();
  CHECK(world.streams.front().reported<client::Ended>().size() == 1);
  world.timers.advance(std::chrono::seconds(59));
  world.settle();
  CHECK(world.worker.calls("request.cancel").empty());
  CHECK(world.calls("lease.release") == 0);
  world.timers.advance(std::chrono::seconds(1));
  world.await_release();
}

TEST_CASE("key lease: it is released with the end of the request that it was kept for") {
  KeysWorld world(Duration::zero());
  world.start_streams(1);
  world.leave_first();
  world.settle();
  CHECK(world.calls("lease.release") == 0);
  world.leases->finished({"A"}, {"req-1"});
  world.await_release();
}

TEST_CASE("key lease: it is kept for a resumable request that is left with unread events") {
  KeysWorld world(Duration::zero());
  world.request.resumable = GENERATE(true, false);
  world.request.max_emitted_tokens = 2 * Generations::kMaxWaiting;
  const auto generations =
      Generations::start(world.io, world.timers, {world.config_of("k1", "req-1")},
                         [&] { world.leases->keep({"k1"}, {"req-1"}, std::chrono::seconds(60)); });
  world.run_until([&] { return world.worker.calls("request.submit").size() == 1; });
  for (std::uint32_t position = 0; !generations->was_unread(); position += 64) {
    REQUIRE(position < world.request.max_emitted_tokens);
    world.World::emit(position, 64);
    world.settle();
  }
  world.settle();
  if (!world.request.resumable) {
    CHECK(world.worker.calls("request.cancel").size() == 1);
    world.World::complete("Cancelled");
    return world.await_release();
  }
  CHECK(world.worker.calls("request.cancel").empty());
  CHECK(world.calls("lease.release") == 0);
  world.timers.advance(std::chrono::seconds(60));
  world.await_release();
}

TEST_CASE("key lease: a drain leaves it to the request that it is kept for") {
  KeysWorld world(Duration::zero());
  world.start_streams(1);
  world.leave_first();
  world.broker.notify("lease.draining", wire::LeaseDraining{.lease = {1, 1}}.to_json());
  world.settle();
  CHECK(world.calls("lease.release") == 0);
  SECTION("whose client comes back under it") {
    Stream& back = world.start();
    world.await_streaming(back);
    CHECK(world.calls("lease.acquire") == 1);
    CHECK(back.reported<client::Submitted>().front().lease == LeaseId{1, 1});
    world.finish(back);
    CHECK(world.calls("lease.release") == 0);
    world.leases->finished({"A"}, {"req-1"});
  }
  SECTION("until its time is over") {
    world.timers.advance(std::chrono::seconds(60));
  }
  SECTION("until the end of the lease") {
    world.broker.notify(
        "lease.revoked",
        wire::LeaseRevoked{.lease = {1, 1}, .reason = RevokeReason::DrainDeadline}.to_json());
  }
  world.await_release();
}

}  // namespace leasehold::http
