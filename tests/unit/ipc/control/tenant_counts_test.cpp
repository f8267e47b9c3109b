// How many names the counts of tenants have.
#include <catch2/catch.hpp>

#include "ipc/control/messages/tenant_counts.hpp"

using namespace leasehold;
using namespace std::chrono_literals;

namespace {

constexpr TimePoint kStart{1'000'000'000'000};

wire::TenantServed served(const std::string& tenant, std::uint64_t tokens) {
  wire::TenantServed served;
  served.tenant = {tenant};
  served.tokens = tokens;
  return served;
}

/// 0 for a tenant without a place.
std::uint64_t tokens_of(const TenantCounts& counts, const std::string& tenant) {
  for (const auto& each : counts.counts())
    if (each.tenant.value == tenant) return each.tokens;
  return 0;
}

}  // namespace

TEST_CASE("tenant counts: a thousand tenants have as many names as places, and one more") {
  TenantCounts counts(4);
  std::uint64_t total = 0;
  for (int i = 0; i < 1000; ++i) {
    counts.add(served("t" + std::to_string(i), 10), kStart);
    total += 10;
  }
  CHECK(counts.counts().size() == 5);
  std::uint64_t counted = 0;
  for (const auto& each : counts.counts()) counted += each.tokens;
  CHECK(counted == total);  // equally busy ones keep their places, so no count was dropped
  CHECK(tokens_of(counts, "t0") == 10);
  CHECK(tokens_of(counts, "other") == 9960);
}

TEST_CASE("tenant counts: a busy tenant takes the place of the least busy one") {
  TenantCounts counts(2);
  counts.add(served("ann", 100), kStart);
  counts.add(served("bob", 50), kStart);
  counts.add(served("eve", 90), kStart);
  CHECK(tokens_of(counts, "eve") == 0);  // not twice as busy as bob
  counts.add(served("eve", 20), kStart);
  CHECK(tokens_of(counts, "eve") == 20);  // the 90 stay with the others
  CHECK(tokens_of(counts, "bob") == 0);
  CHECK(tokens_of(counts, "other") == 90);
}

TEST_CASE("tenant counts: a tenant that was busy long ago loses its place") {
  TenantCounts counts(1);
  counts.add(served("ann", 1000), kStart);
  for (int minute = 1; minute <= 10; ++minute)
    counts.add(served("bob", 10), kStart + std::chrono::minutes(minute));
  CHECK(tokens_of(counts, "bob") > 0);
  CHECK(tokens_of(counts, "ann") == 0);
}

TEST_CASE("tenant counts: a tenant with the name of the others has no place") {
  TenantCounts counts(2);
  counts.add(served("other", 7), kStart);
  counts.add(served("ann", 1), kStart);
  CHECK(counts.counts().size() == 2);
  CHECK(tokens_of(counts, "other") == 7);
}
