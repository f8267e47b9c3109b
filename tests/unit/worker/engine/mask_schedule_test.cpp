#include "worker/engine/mask_schedule.hpp"

#include <catch2/catch.hpp>

namespace leasehold {
namespace {

constexpr MaskSchedule::Limits kLimits{.slice = 10, .tenant = 40, .step = 100};

/// Sequences that never finish use every turn; returns the units of each.
std::map<std::uint32_t, std::size_t> use_all(MaskSchedule& turns) {
  std::map<std::uint32_t, std::size_t> units;
  while (const auto turn = turns.next()) {
    units[turn->sequence] += turn->units;
    turns.record(turn->sequence, turn->units, false);
  }
  return units;
}

}  // namespace

TEST_CASE("mask schedule: a tenant with many sequences gets as much as one with one") {
  MaskSchedule turns(kLimits, {});
  for (std::uint32_t i = 0; i < 16; ++i) turns.add(i, TenantId{"greedy"}, 0);
  turns.add(16, TenantId{"modest"}, 0);
  const auto units = use_all(turns);
  CHECK(units.at(16) == 40);
  CHECK(turns.spent() == 80);
}

TEST_CASE("mask schedule: a tenant alone gets its part of the step, and no more") {
  MaskSchedule turns(kLimits, {});
  turns.add(0, TenantId{"t"}, 0);
  turns.add(1, TenantId{"t"}, 0);
  CHECK(use_all(turns) == std::map<std::uint32_t, std::size_t>{{0, 20}, {1, 20}});
}

TEST_CASE("mask schedule: all tenants together get the step") {
  MaskSchedule turns(kLimits, {});
  for (std::uint32_t i = 0; i < 5; ++i) turns.add(i, TenantId{"t" + std::to_string(i)}, 0);
  for (const auto& [sequence, units] : use_all(turns)) CHECK(units == 20);
  CHECK(turns.spent() == kLimits.step);
}

TEST_CASE("mask schedule: when a step has too little, the next one begins with another tenant") {
  std::map<std::uint32_t, std::size_t> units;
  TenantId last;
  for (int step = 0; step < 3; ++step) {
    MaskSchedule turns({.slice = 10, .tenant = 10, .step = 20}, last);
    for (std::uint32_t i = 0; i < 3; ++i) turns.add(i, TenantId{"t" + std::to_string(i)}, 0);
    for (const auto& [sequence, more] : use_all(turns)) units[sequence] += more;
    last = turns.last();
  }
  CHECK(units == std::map<std::uint32_t, std::size_t>{{0, 20}, {1, 20}, {2, 20}});
}

TEST_CASE("mask schedule: a new mask overtakes one that has taken long") {
  MaskSchedule turns(kLimits, {});
  turns.add(0, TenantId{"t"}, 1000);
  turns.add(1, TenantId{"t"}, 0);
  REQUIRE(turns.next()->sequence == 1);
  turns.record(1, 5, true);
  REQUIRE(turns.next()->sequence == 0);
  turns.record(0, 25, false);  // the last step of a slice may exceed it
  REQUIRE(turns.next()->units == 10);
  turns.record(0, 10, true);
  REQUIRE_FALSE(turns.next());
}

TEST_CASE("mask schedule: every tenant may compute the worst honest mask in its step") {
  constexpr std::size_t kNodes = 142'397;
  const auto alone = MaskSchedule::limits_for({}, kNodes, 1);
  CHECK(alone.step >= 8 * kNodes);
  CHECK(alone.tenant == alone.step);
  for (const std::size_t tenants : {std::size_t{2}, std::size_t{8}, std::size_t{64}}) {
    const auto limits = MaskSchedule::limits_for({}, kNodes, tenants);
    CHECK(limits.step == alone.step);
    CHECK(limits.tenant > kNodes);
    CHECK(limits.tenant <= std::max(limits.step / tenants, kNodes + (kNodes / 8)));
  }
  CHECK(MaskSchedule::limits_for({.step_units = 50}, kNodes, 2).tenant == 50);
}

}  // namespace leasehold
