// What a worker that loads answers the broker.
#include "worker/lease/early_calls.hpp"

#include <catch2/catch.hpp>

#include "tests/support/engine_rig.hpp"

namespace leasehold::early_calls_test {
namespace {

using testing::EngineRig;

/// Calls, and the answers that have come.
class Fixture {
 public:
  using Answer = std::shared_ptr<std::optional<Result<void>>>;

  Answer call(const auto& message) {
    auto answer = std::make_shared<std::optional<Result<void>>>();
    early.on_call(std::string(message.kMethod), {message.to_json(), {}},
                  [answer](Result<control::Payload> reply) {
                    *answer = reply ? Result<void>{} : std::unexpected(reply.error());
                  });
    return answer;
  }
  void unmapped(LeaseId lease) {
    early.unmapped(lease);
    io.restart();
    io.poll();
  }

  boost::asio::io_context io;
  EarlyCalls early{io};
};

bool succeeded(const Fixture::Answer& answer) {
  return answer->has_value() && (*answer)->has_value();
}

constexpr LeaseId kLease{3, 1};
constexpr LeaseId kOther{4, 1};

}  // namespace

TEST_CASE("early calls: settle and unmap are answered once the lease's memory is unmapped") {
  Fixture fixture;
  const auto settle = fixture.call(wire::LeaseSettle{.lease = kLease});
  const auto unmap = fixture.call(wire::LeaseUnmap{.lease = kLease});
  fixture.unmapped(kOther);
  CHECK_FALSE(settle->has_value());
  CHECK_FALSE(unmap->has_value());

  fixture.unmapped(kLease);

  CHECK(succeeded(settle));
  CHECK(succeeded(unmap));
}

TEST_CASE("early calls: an unmap that comes after the memory is gone is answered at once") {
  Fixture fixture;
  fixture.unmapped(kLease);
  CHECK(succeeded(fixture.call(wire::LeaseUnmap{.lease = kLease})));
}

TEST_CASE("early calls: a ping is answered, and a grant is refused as too early") {
  Fixture fixture;
  CHECK(succeeded(fixture.call(wire::WorkerPing{})));
  const auto grant = fixture.call(wire::LeaseGrant{.lease = kLease});
  REQUIRE((grant->has_value() && !(*grant)->has_value()));
  CHECK((*grant)->error().code == Errc::NoModelLoaded);
}

TEST_CASE(
    "early calls: weights that are revoked while a draft loads are unmapped, live ones stay") {
  Fixture fixture;
  EngineRig rig({.weights_scope = WeightsScope::Layer});
  const LeaseId lost = rig.engine_lease(1), live = rig.engine_lease(2);
  const auto unmap = fixture.call(wire::LeaseUnmap{.lease = lost});
  const auto other = fixture.call(wire::LeaseUnmap{.lease = live});
  std::vector<LeaseId> elsewhere;
  const auto unmap_elsewhere = [&](LeaseId lease) {
    CHECK_FALSE(unmap->has_value());
    elsewhere.push_back(lease);
  };
  fixture.early.unmap_revoked(rig.engine(), unmap_elsewhere);
  fixture.unmapped(kOther);  // runs what was posted
  CHECK_FALSE(unmap->has_value());
  CHECK(elsewhere.empty());

  rig.revoke(lost);
  fixture.early.unmap_revoked(rig.engine(), unmap_elsewhere);
  fixture.unmapped(kOther);
  fixture.early.unmap_revoked(rig.engine(), [](LeaseId) { FAIL("it is unmapped already"); });

  CHECK(succeeded(unmap));
  CHECK(elsewhere == std::vector{lost});
  CHECK_FALSE(other->has_value());
  CHECK_FALSE(rig.engine().unmap_lease(lost));
  CHECK(rig.engine().unmap_lease(live));
}

TEST_CASE("early calls: what waits when the engine serves is answered by the lease service") {
  Fixture fixture;
  EngineRig rig;
  EngineLoop loop(rig.engine(), {.on_report = [](auto) {},
                                 .on_growth = [](auto) {},
                                 .on_drained = [](auto) {},
                                 .on_weights_lost = [](Engine&) { return Result<void>{}; }});
  LeaseService service({.io = &fixture.io,
                        .mapper = fixture.io.get_executor(),
                        .unmapper = fixture.io.get_executor(),
                        .loop = &loop,
                        .engine = &rig.engine(),
                        .table = &rig.table(),
                        .clock = &rig.clock()});
  const LeaseId lease = rig.grant("t");
  rig.revoke(lease);
  rig.fence(lease);
  const auto unmap = fixture.call(wire::LeaseUnmap{.lease = lease});

  fixture.early.forward_to(service);
  fixture.io.restart();
  fixture.io.poll();

  CHECK(succeeded(unmap));
  CHECK_FALSE(rig.engine().unmap_lease(lease));  // nothing is left
}

}  // namespace leasehold::early_calls_test
