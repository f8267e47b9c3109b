// Several sessions, one after the other, under the lease of one holder; and a text that an earlier
// process began.
#include <catch2/catch.hpp>

#include "ipc/client/session.hpp"
#include "tests/unit/ipc/client/fake_world.hpp"

using namespace leasehold;
using namespace leasehold::client;

namespace {

struct SharedWorld : World {
  SharedWorld() {
    holder = LeaseHolder::create(io, timers, directory / "broker.sock", {},
                                 LeaseHolder::AtSessionEnd::KeepLive);
  }
  /// Streams one text to its end.
  Ended text() {
    events.clear();
    stream(true);
    emit(0, 2);
    complete("EndOfSequence");
    return end();
  }
};

}  // namespace

TEST_CASE("tenant session: the next text runs under the lease that the holder kept") {
  SharedWorld world;
  CHECK_FALSE(world.text().error);
  CHECK(world.broker.calls("lease.release").empty());
  CHECK(world.holder->is_live());

  CHECK_FALSE(world.text().error);

  CHECK(world.broker.calls("lease.acquire").size() == 1);
  CHECK(world.worker.calls("request.submit").size() == 2);
  CHECK(world.reported<Acquired>().empty());
}

TEST_CASE("tenant session: a lease that ended between two texts is replaced") {
  SharedWorld world;
  world.text();
  world.broker.notify("lease.revoked", wire::LeaseRevoked{.lease = {1, 1},
                                                          .scope = wire::LeaseScope::Tenant,
                                                          .reason = RevokeReason::Operator}
                                           .to_json());
  world.run_until([&] { return !world.holder->is_live(); });

  CHECK_FALSE(world.text().error);

  REQUIRE(world.broker.calls("lease.acquire").size() == 2);
  CHECK(world.broker.calls("lease.acquire")[1].at("replaces") == "1.1");
}

TEST_CASE("tenant session: a text that failed without a live lease keeps none") {
  SharedWorld world;
  world.broker.answers["lease.acquire"] = {fail(Errc::QuotaBlocks, "9 > 8")};
  world.start();

  CHECK(world.end().error->code == Errc::QuotaBlocks);
  CHECK_FALSE(world.holder->is_live());
}

TEST_CASE("tenant session: tokens of an earlier process are submitted and not expected again") {
  World world;
  world.request.emitted = {token_at(0), token_at(1)};
  world.stream();
  CHECK(world.worker.calls("request.submit").at(0).at("emitted").size() == 2);
  world.sent = 2;
  world.emit(2, 1);
  world.complete("EndOfSequence");

  const Ended ended = world.end();

  CHECK_FALSE(ended.error);
  CHECK(ended.delivered_tokens == 3);
  CHECK(world.reported<TokenArrived>().size() == 1);
}
