#include "worker/engine/step_sampler.hpp"

#include <catch2/catch.hpp>

#include "tests/support/engine_rig.hpp"

namespace leasehold::testing {
namespace {

using std::chrono::milliseconds;

constexpr Duration kInterval = milliseconds(100);

StepSample numbered(std::uint64_t step) {
  return {.step = step};
}

/// Two tenants with one request each.
struct SampledRig : EngineRig {
  SampledRig() {
    REQUIRE(submit(request("t", grant("t"), "r", {1, 5, 6}, 20)));
    PromptRequest continued = request("u", grant("u"), "s", {1, 7}, 20);
    continued.emitted = {8, 9};
    continued.rebound_from = LeaseId{1000, 1};
    REQUIRE(submit(continued));
  }
  std::optional<StepSample> sample_of_step() { return step().value().sample; }
};

}  // namespace

TEST_CASE("step sampler: the first step is due, then the first one after each interval") {
  StepSampler sampler;
  ManualClock clock;
  sampler.set_interval(kInterval);
  CHECK(sampler.is_due(clock.now()));
  CHECK_FALSE(sampler.is_due(clock.now()));
  clock.advance(kInterval - Duration(1));
  CHECK_FALSE(sampler.is_due(clock.now()));
  clock.advance(Duration(1));
  CHECK(sampler.is_due(clock.now()));
  clock.advance(10 * kInterval);
  CHECK(sampler.is_due(clock.now()));
  CHECK_FALSE(sampler.is_due(clock.now()));  // the intervals without a step are over
}

TEST_CASE("step sampler: a changed interval holds from the last sample on") {
  StepSampler sampler;
  ManualClock clock;
  sampler.set_interval(kInterval);
  CHECK(sampler.is_due(clock.now()));
  clock.advance(milliseconds(10));
  CHECK_FALSE(sampler.is_due(clock.now()));
  sampler.set_interval(milliseconds(10));
  CHECK(sampler.is_due(clock.now()));
}

TEST_CASE("step sampler: a sample that was not taken is replaced by the newest") {
  StepSampler sampler;
  sampler.set_interval(kInterval);
  CHECK(sampler.put(numbered(1)));
  CHECK_FALSE(sampler.put(numbered(2)));
  CHECK(sampler.take()->step == 2);
  CHECK_FALSE(sampler.take());
  CHECK(sampler.put(numbered(3)));
}

TEST_CASE("step sampler: once it is off, no step is due and no sample is left") {
  StepSampler sampler;
  CHECK_FALSE(sampler.is_due(ManualClock().now()));
  sampler.set_interval(kInterval);
  sampler.put(numbered(1));
  sampler.set_interval(Duration::zero());
  CHECK_FALSE(sampler.is_due(ManualClock().now()));
  CHECK_FALSE(sampler.take());
  sampler.put(numbered(2));  // its step began before
  CHECK_FALSE(sampler.take());
}

TEST_CASE("engine: no step has a sample while the sampling is off") {
  SampledRig rig;
  CHECK_FALSE(rig.sample_of_step());
  rig.step_sampler().set_interval(kInterval);
  CHECK(rig.sample_of_step());
  rig.step_sampler().set_interval(Duration::zero());
  rig.clock().advance(kInterval);
  CHECK_FALSE(rig.sample_of_step());
}

TEST_CASE("engine: a sample has the batch, the requests and the tokens of each tenant") {
  SampledRig rig;
  rig.step_sampler().set_interval(kInterval);
  const auto prefill = rig.sample_of_step();
  REQUIRE(prefill);
  CHECK(prefill->n_seqs == 2);
  CHECK(prefill->running == 2);
  CHECK(prefill->waiting == 0);
  CHECK(prefill->at == rig.clock().now());
  REQUIRE(prefill->tenants.size() == 2);
  CHECK(prefill->tenants.at({"t"}).prefill == 3);
  CHECK(prefill->tenants.at({"u"}).prefill == 4);  // text of the earlier lease included
  CHECK(prefill->tenants.at({"u"}).decode == 0);

  CHECK_FALSE(rig.sample_of_step());
  rig.clock().advance(kInterval);
  const auto decode = rig.sample_of_step();
  REQUIRE(decode);
  CHECK(decode->step == prefill->step + 2);
  for (const char* tenant : {"t", "u"}) {
    CHECK(decode->tenants.at({tenant}).prefill == 0);
    CHECK(decode->tenants.at({tenant}).decode == 1);
  }
}

}  // namespace leasehold::testing
