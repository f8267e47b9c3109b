// Loads of adapters: their memory, revocations, lost answers, and what the broker asks for.
#include <catch2/catch.hpp>

#include "tests/support/required.hpp"
#include "tests/unit/worker/adapter/adapter_loader_fixture.hpp"

namespace leasehold {
namespace {

using namespace std::chrono_literals;
using testing::adapter_bytes;
using testing::kLargeRank;
using testing::kLargestRank;
using testing::kRank;
using testing::LoaderCall;
using testing::LoaderFixture;
using testing::required;

}  // namespace

TEST_CASE("adapter loader: the matrices of the file are in the lease's extents") {
  LoaderFixture f;
  const AdapterUse use = f.load();

  CHECK(use->name == "law");
  CHECK(use->version == 1);
  const LowRankMatrix& query = use->matrices->of(0, AdapterTarget::Query);
  CHECK(query.rank == kRank);
  CHECK(query.scale == 2.0F);
  f.check_memory(use->lease, *use->matrices);
  CHECK(use->matrices->of(0, AdapterTarget::Down).rank == kRank);
  CHECK(use->matrices->of(0, AdapterTarget::Key).rank == 0);
  CHECK(f.loader().leases() == std::vector{use->lease});
  CHECK(f.loader().counts().loads == 1);
}

TEST_CASE("adapter loader: a revocation ends a load within a unit, and the next lease is filled") {
  LoaderFixture f;
  f.use();
  f.resolve();
  const LeaseId first = f.open();
  f.rig.revoke(first);
  const std::uint64_t units = f.rig.engine_gate().units_run();
  f.turn();
  CHECK(f.rig.engine_gate().units_run() == units);

  const LeaseId second = f.open();
  f.fill();

  CHECK(second != first);
  CHECK(f.answer_of(0)->lease == second);
}

TEST_CASE("adapter loader: a lease that ended before its answer arrived is replaced") {
  LoaderFixture f;
  f.use();
  f.resolve();
  LoaderCall call = f.expect<wire::AdapterOpen>();
  const LeaseId first = f.rig.grant_adapter();
  f.loader().granted(first, "law", 1);
  f.rig.revoke(first);
  f.rig.fence(first);
  f.rig.engine().drop_lease(first);
  f.answer(std::move(call), wire::AdapterOpened{.lease = first});

  const LeaseId second = f.open();
  f.fill();

  CHECK(second != first);
  CHECK(f.answer_of(0)->lease == second);
}

TEST_CASE("adapter loader: a revoked adapter is given to no request, also before the next step") {
  LoaderFixture f;
  const AdapterUse held = f.load();
  f.rig.revoke(held->lease);

  f.use();

  CHECK_FALSE(f.answers[1].has_value());
  CHECK(f.loader().leases() == std::vector{held->lease});  // the engine ends its requests
  const LeaseId next = f.open();
  f.fill();
  CHECK(f.answer_of(1)->lease == next);
}

TEST_CASE("adapter loader: a file with another content is opened under its own digest") {
  LoaderFixture f;
  const AdapterUse held = f.load();
  f.rig.revoke(held->lease);
  f.write(9.0F);

  f.use();

  const LoaderCall call = f.expect<wire::AdapterOpen>();
  const auto opened = required(wire::AdapterOpen::from_json(call.body));
  CHECK(opened.digest.size() == 64);
  CHECK(opened.digest != held->digest.hex());
}

TEST_CASE("adapter loader: a file that is gone at a reload is a missing weight") {
  LoaderFixture f;
  const AdapterUse held = f.load();
  f.rig.revoke(held->lease);
  f.remove();

  f.use();
  f.turn();

  REQUIRE(f.answers[1].has_value());
  CHECK(f.answers[1]->error().code == Errc::MissingWeight);
  CHECK(f.answers[1]->error().scope == FailureScope::Adapter);
}

TEST_CASE("adapter loader: beside running texts a load takes many steps") {
  LoaderFixture f;
  f.use();
  f.resolve();
  f.open();
  const std::uint64_t units = f.rig.engine_gate().units_run();
  f.turn(1us);  // 3 % of this step is too short for a copy
  f.turn(1us);
  CHECK(f.rig.engine_gate().units_run() == units);

  f.turn(10ms);

  CHECK(f.rig.engine_gate().units_run() > units);
}

TEST_CASE("adapter loader: after a step it copies all slices that there is time for") {
  LoaderFixture f;
  f.write(adapter_bytes(f.rig.config(), 8.0F, kLargeRank, f.rig.config().n_layers));
  f.use();
  f.resolve();
  const LeaseId lease = f.open();

  const std::uint64_t before = f.rig.engine_gate().units_run();

  f.turn(10s);

  const std::uint64_t units = f.rig.engine_gate().units_run();
  CHECK(units > before);
  f.turn();
  CHECK(f.rig.engine_gate().units_run() == units);
  f.fill();
  f.check_memory(lease, *f.answer_of(0)->matrices);
}

TEST_CASE("adapter loader: slices beyond those that are read ahead are read after the copies") {
  LoaderFixture f;
  f.write(adapter_bytes(f.rig.config(), 8.0F, kLargestRank, f.rig.config().n_layers));
  f.use();
  f.resolve();
  const LeaseId lease = f.open();

  f.fill();

  CHECK(f.answer_of(0)->lease == lease);
}

/// Revokes the lease while a unit runs.
class RevokeInUnit final : public GateProbe {
 public:
  void unit_polled(std::uint32_t, LaunchSite, std::uint16_t, SequenceMask) override {
    if (left_ > 0 && --left_ == 0) rig->revoke(lease);
  }
  void arm(std::uint32_t unit) { left_ = unit; }

  testing::EngineRig* rig = nullptr;
  LeaseId lease;

 private:
  std::uint32_t left_ = 0;
};

TEST_CASE("adapter loader: it copies nothing more before the texts of a revoked lease end") {
  RevokeInUnit probe;
  LoaderFixture f(&probe);
  f.write(adapter_bytes(f.rig.config(), 8.0F, kLargeRank, f.rig.config().n_layers));
  f.use();
  f.resolve();
  const LeaseId lease = f.open();
  probe.rig = &f.rig;
  probe.lease = f.rig.grant("t");
  probe.arm(3);
  const std::uint64_t units = f.rig.engine_gate().units_run();

  f.turn(10s);

  CHECK(f.rig.engine_gate().units_run() == units + 3);
  f.fill();
  f.check_memory(lease, *f.answer_of(0)->matrices);
}

TEST_CASE("adapter loader: a lease whose answer was lost is given back before the next call") {
  LoaderFixture f;
  f.use();
  f.resolve();
  LoaderCall lost = f.expect<wire::AdapterOpen>();
  const LeaseId orphan = f.rig.grant_adapter();
  f.loader().granted(orphan, "law", 1);
  f.refuse(std::move(lost), Errc::ConnectionLost);
  f.rig.clock().advance(kAdapterRetryDelay);

  const LoaderCall close = f.expect<wire::AdapterClose>();

  CHECK(required(wire::AdapterClose::from_json(close.body)).lease == orphan);
  f.expect<wire::AdapterOpen>();
}

TEST_CASE("adapter loader: after a reconnect it asks again, and gives unknown leases back") {
  LoaderFixture f;
  const AdapterUse held = f.load();
  const LeaseId orphan = f.rig.grant_adapter();
  f.loader().granted(orphan, "old", 1);

  f.loader().reconnected();

  const LoaderCall close = f.expect<wire::AdapterClose>();
  CHECK(required(wire::AdapterClose::from_json(close.body)).lease == orphan);
  f.resolve(2);
  f.use();
  const LeaseId next = f.open();
  f.fill();
  CHECK(f.answer_of(1)->lease == next);
  CHECK(f.answer_of(1)->version == 2);
}

TEST_CASE("adapter loader: the broker's calls load, unload and forget") {
  LoaderFixture f;
  std::optional<Result<control::Payload>> loaded;
  f.loader().on_call(
      std::string(wire::AdapterLoad::kMethod),
      wire::AdapterLoad{
          .adapter = {"law"}, .worker = "w", .tenant = TenantId{"t"}, .request_id = {"r"}}
          .to_json(),
      [&](Result<control::Payload> reply) { loaded = std::move(reply); });
  f.resolve();
  f.open();
  CHECK_FALSE(loaded.has_value());
  f.fill();
  CHECK_FALSE(loaded.has_value());  // the engine's thread may not use the connection
  f.connection.poll();
  REQUIRE(loaded.has_value());
  CHECK(loaded->has_value());

  f.loader().on_call(std::string(wire::AdaptersChanged::kMethod), wire::Empty{}.to_json(),
                     [](Result<control::Payload>) {});
  f.resolve();
  f.loader().on_call(
      std::string(wire::AdapterUnload::kMethod),
      wire::AdapterUnload{.adapter = {"law"}, .worker = "w", .request_id = {"r"}}.to_json(),
      [](Result<control::Payload>) {});
  f.expect<wire::AdapterClose>();
  CHECK(f.loader().counts().loaded == 0);
}

TEST_CASE("adapter loader: an adapter leaves when the broker asks for its memory") {
  LoaderFixture f;
  AdapterUse held = f.load();
  const wire::AdaptersYield asked{.tenant = {"u"}, .leases = {held->lease}, .size_bytes = 1};
  const auto ask = [&] {
    f.loader().on_call(std::string(wire::AdaptersYield::kMethod), asked.to_json(),
                       [](Result<control::Payload>) {});
    f.turn();
  };
  ask();
  CHECK(f.loader().counts().loaded == 1);

  held.reset();
  f.answers.clear();
  ask();

  const LoaderCall close = f.expect<wire::AdapterClose>();
  CHECK(required(wire::AdapterClose::from_json(close.body)).lease == asked.leases.front());
}

}  // namespace leasehold
