// Adapters that no request uses make room for texts.
#include <catch2/catch.hpp>

#include "tests/unit/broker/adapter_world.hpp"

using namespace leasehold;

namespace {

constexpr std::uint32_t kPerExtent = 8;  ///< Blocks; 16 extents in all.

/// Two extents are an adapter's of tenant "a", one is an adapter's of tenant "b".
struct YieldWorld : AdapterWorld {
  YieldWorld() {
    for (const char* name : {"a", "b"}) admit_tenant(name, 1000);
    add("law");
    add("tax", "b");
    law = filled("law", {.size_bytes = 2 * kExtentBytes});
    tax = filled("tax", {.tenant = "b"});
    forget_effects();
  }
  CallId ask(std::uint32_t extents) { return acquire("a", extents * kPerExtent); }
  std::vector<wire::AdaptersYield> asked() const {
    std::vector<wire::AdaptersYield> found;
    for (const auto& effect : performed<effect::NotifyAdapters>())
      if (const auto* yield = std::get_if<wire::AdaptersYield>(&effect.notice))
        found.push_back(*yield);
    return found;
  }

  LeaseId law;
  LeaseId tax;
};

}  // namespace

TEST_CASE("adapter yield: a text that finds no memory asks the worker for that of idle adapters") {
  YieldWorld world;

  const Result<Answer> refused = world.answers.at(world.ask(14));
  CHECK(refused.error().code == Errc::PoolExhausted);
  CHECK(refused.error().retry_after_ms > 0);

  const auto asked = world.asked();
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].tenant == TenantId{"a"});
  CHECK(asked[0].leases == std::vector{world.law, world.tax});
  CHECK(asked[0].size_bytes == kExtentBytes);

  world.close(world.tax);
  CHECK_NOTHROW(world.answer<wire::LeaseAcquired>(world.ask(14)));
  CHECK(world.record(world.law).is(LeaseState::Live));
}

TEST_CASE("adapter yield: no more is asked for while the memory of one that left returns") {
  YieldWorld world;
  world.workers_answer = false;
  world.begin_unit(world.worker, Touches::TenantMemory);
  world.close(world.tax);

  CHECK(world.refusal(world.ask(14)) == Errc::PoolExhausted);
  CHECK(world.asked().empty());
  world.ask(15);
  REQUIRE(world.asked().size() == 1);
  CHECK(world.asked()[0].size_bytes == kExtentBytes);
}

TEST_CASE("adapter yield: a growth asks too, and does not wait for adapters that may be in use") {
  YieldWorld world;
  const LeaseId text = world.answer<wire::LeaseAcquired>(world.ask(13)).lease;

  const CallId grow = world.call(kHolder, wire::LeaseGrow{.lease = text, .extents = 1});

  CHECK(world.refusal(grow) == Errc::PoolExhausted);
  CHECK(world.answers.at(grow).error().retry_after_ms == 0);
  CHECK(world.asked().size() == 1);
}

TEST_CASE("adapter yield: neither an adapter nor a scavenger asks for it") {
  YieldWorld world;
  (void)world.answer<wire::LeaseAcquired>(world.ask(13));
  world.add("next");
  CHECK(world.refusal(world.open("next")) == Errc::PoolExhausted);
  const wire::LeaseAcquire batch{.tenant = {"a"}, .blocks = kPerExtent, .scavenger = true};
  CHECK(world.refusal(world.call(kHolder, batch)) == Errc::PoolExhausted);
  CHECK(world.asked().empty());
}

TEST_CASE("adapter yield: adapters within the reserve of another tenant are spared") {
  YieldWorld world;
  world.call(kOperator,
             wire::TenantAdmit{
                 .tenant = {"b"}, .reserved_blocks = kPerExtent, .tier = wire::Tier::Guaranteed});

  CHECK(world.refusal(world.ask(16)) == Errc::PoolExhausted);

  REQUIRE(world.asked().size() == 1);
  CHECK(world.asked()[0].leases == std::vector{world.law});
  CHECK(world.asked()[0].size_bytes == 3 * kExtentBytes);
}
