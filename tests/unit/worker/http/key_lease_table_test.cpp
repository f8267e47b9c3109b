// Which lease the requests of an API key use, and when it is released.
#include <catch2/catch.hpp>

#include "worker/http/keys/key_lease_table.hpp"

using namespace leasehold;
using namespace leasehold::http;

namespace {

constexpr Duration kIdle = std::chrono::seconds(30);
const ApiKeyId kKey{"k1"};
const ApiKeyId kOther{"k2"};
const TenantId kAnn{"ann"};
const TenantId kBob{"bob"};

TimePoint at(double seconds) {
  return {static_cast<std::int64_t>(seconds * 1e9)};
}

/// Joins, and is granted what it asks for.
KeyLeaseTable::Number open(KeyLeaseTable& leases, const ApiKeyId& key, const TenantId& tenant,
                           TimePoint now) {
  const auto joined = leases.join(key, tenant, now);
  if (const auto* acquire = std::get_if<KeyLeaseTable::Acquire>(&joined)) {
    leases.granted(acquire->lease);
    return acquire->lease;
  }
  return std::get<KeyLeaseTable::Use>(joined).lease;
}

void leave(KeyLeaseTable& leases, KeyLeaseTable::Number lease, TimePoint now) {
  leases.left(lease);
  CHECK(leases.take_unused(now).empty());
}

using Numbers = std::vector<KeyLeaseTable::Number>;

}  // namespace

TEST_CASE("key leases: the first request of a key asks for a lease, the others wait and use it") {
  KeyLeaseTable leases(kIdle);
  const auto first = leases.join(kKey, kAnn, at(0));
  REQUIRE(std::holds_alternative<KeyLeaseTable::Acquire>(first));
  const auto number = std::get<KeyLeaseTable::Acquire>(first).lease;
  CHECK(std::get<KeyLeaseTable::Wait>(leases.join(kKey, kAnn, at(0))).lease == number);
  leases.granted(number);
  CHECK(std::get<KeyLeaseTable::Use>(leases.join(kKey, kAnn, at(0))).lease == number);
  // Another key of the same tenant has a lease of its own.
  CHECK(std::holds_alternative<KeyLeaseTable::Acquire>(leases.join(kOther, kAnn, at(0))));
}

TEST_CASE("key leases: a lease without requests is released after the idle time, not before") {
  KeyLeaseTable leases(kIdle);
  const auto lease = open(leases, kKey, kAnn, at(0));
  CHECK(open(leases, kKey, kAnn, at(0)) == lease);
  leave(leases, lease, at(1));
  CHECK_FALSE(leases.next_expiry());  // a request still runs
  leave(leases, lease, at(2));
  CHECK(leases.next_expiry() == at(32));
  CHECK(leases.take_unused(at(31.9)).empty());
  CHECK(leases.take_unused(at(32)) == Numbers{lease});
  CHECK(std::holds_alternative<KeyLeaseTable::Acquire>(leases.join(kKey, kAnn, at(32))));
}

TEST_CASE("key leases: a request within the idle time uses the lease and ends that time") {
  KeyLeaseTable leases(kIdle);
  const auto lease = open(leases, kKey, kAnn, at(0));
  leave(leases, lease, at(0));
  CHECK(open(leases, kKey, kAnn, at(29)) == lease);
  CHECK(leases.take_unused(at(100)).empty());
  leave(leases, lease, at(100));
  CHECK(leases.next_expiry() == at(130));
}

TEST_CASE("key leases: a request that goes on without its session keeps the lease") {
  KeyLeaseTable leases(Duration::zero());
  const auto lease = open(leases, kKey, kAnn, at(0));
  leases.keep(lease, {"long"}, at(60));
  leave(leases, lease, at(1));
  leases.keep(lease, {"short"}, at(50));
  CHECK(leases.next_expiry() == at(60));
  CHECK(leases.take_unused(at(59)).empty());
  CHECK(leases.take_unused(at(60)) == Numbers{lease});
}

TEST_CASE("key leases: a lease is kept until all its requests without clients are finished") {
  KeyLeaseTable leases(Duration::zero());
  const auto lease = open(leases, kKey, kAnn, at(0));
  const auto other = open(leases, kOther, kBob, at(0));
  for (const char* request : {"one", "two"}) leases.keep(lease, {request}, at(60));
  leases.keep(other, {"one"}, at(60));
  leave(leases, lease, at(1));
  leave(leases, other, at(1));
  leases.finished(kAnn, {"one"});
  CHECK(leases.take_unused(at(2)).empty());
  leases.finished(kAnn, {"two"});
  CHECK(leases.take_unused(at(2)) == Numbers{lease});
  CHECK(leases.is_kept(other, at(2)));  // another tenant's "one"
}

TEST_CASE("key leases: after its kept request is finished a lease is idle as long as any other") {
  KeyLeaseTable leases(kIdle);
  const auto lease = open(leases, kKey, kAnn, at(0));
  leases.keep(lease, {"r"}, at(60));
  leave(leases, lease, at(1));
  CHECK(leases.next_expiry() == at(60));
  leases.finished(kAnn, {"r"});
  CHECK(leases.next_expiry() == at(31));
}

TEST_CASE(
    "key leases: a kept lease that takes no more requests is released when its time is over") {
  KeyLeaseTable leases(kIdle);
  const auto lease = open(leases, kKey, kAnn, at(0));
  leases.keep(lease, {"r"}, at(60));
  leave(leases, lease, at(1));
  leases.close(lease);
  CHECK(leases.take_unused(at(59)).empty());
  CHECK(leases.next_expiry() == at(60));
  SECTION("of its request") {
    CHECK(leases.take_unused(at(60)) == Numbers{lease});
  }
  SECTION("at once when its request is finished") {
    leases.finished(kAnn, {"r"});
    CHECK(leases.take_unused(at(59)) == Numbers{lease});
  }
  SECTION("at once when it has ended") {
    leases.ended(lease);
    CHECK(leases.take_unused(at(59)) == Numbers{lease});
  }
}

TEST_CASE("key leases: a request keeps the lease that it runs under, not its key's later one") {
  KeyLeaseTable leases(Duration::zero());
  const auto drained = open(leases, kKey, kAnn, at(0));
  leases.close(drained);
  const auto later = open(leases, kKey, kAnn, at(1));
  leases.keep(drained, {"r"}, at(60));
  CHECK_FALSE(leases.is_kept(later, at(2)));
  leave(leases, drained, at(2));
  CHECK(leases.take_unused(at(59)).empty());
  CHECK(leases.take_unused(at(60)) == Numbers{drained});
}

TEST_CASE("key leases: a lease that has ended is kept for no request") {
  KeyLeaseTable leases(kIdle);
  const auto lease = open(leases, kKey, kAnn, at(0));
  leases.ended(lease);
  leases.keep(lease, {"r"}, at(60));
  leases.left(lease);
  CHECK(leases.take_unused(at(1)) == Numbers{lease});
}

TEST_CASE("key leases: after a lease ended one request asks for another one") {
  KeyLeaseTable leases(kIdle);
  const auto old = open(leases, kKey, kAnn, at(0));
  open(leases, kKey, kAnn, at(0));
  leases.close(old);
  const auto fresh = open(leases, kKey, kAnn, at(1));
  CHECK(fresh != old);
  CHECK(open(leases, kKey, kAnn, at(1)) == fresh);
  leave(leases, old, at(1));
  leases.left(old);
  CHECK(leases.take_unused(at(1)) == Numbers{old});  // at once: nothing uses it again
}

TEST_CASE("key leases: a refusal that passes is given to later requests for a moment") {
  KeyLeaseTable leases(kIdle);
  const Error full{Errc::PoolExhausted, "full"};
  const auto asked = std::get<KeyLeaseTable::Acquire>(leases.join(kKey, kAnn, at(0))).lease;
  leases.refused(asked, full, at(0));
  leases.left(asked);  // too late: nothing happens
  CHECK(std::get<Error>(leases.join(kKey, kAnn, at(0.049))) == full);
  CHECK(std::holds_alternative<KeyLeaseTable::Acquire>(leases.join(kOther, kAnn, at(0.049))));
  CHECK(std::holds_alternative<KeyLeaseTable::Acquire>(leases.join(kKey, kAnn, at(0.05))));
}

TEST_CASE("key leases: a final refusal is given to those that waited only") {
  KeyLeaseTable leases(kIdle);
  const auto asked = std::get<KeyLeaseTable::Acquire>(leases.join(kKey, kAnn, at(0))).lease;
  leases.refused(asked, {Errc::BadToken, "revoked"}, at(0));
  CHECK(std::holds_alternative<KeyLeaseTable::Acquire>(leases.join(kKey, kAnn, at(0))));
}

TEST_CASE("key leases: idle leases give way to a key that was refused blocks or memory") {
  KeyLeaseTable leases(kIdle);
  const auto ann = open(leases, kKey, kAnn, at(0));
  const auto bob = open(leases, {"k3"}, kBob, at(0));
  const auto kept = open(leases, {"k4"}, kAnn, at(0));
  const auto running = open(leases, {"k5"}, kAnn, at(0));
  leases.keep(kept, {"r"}, at(60));
  for (const auto lease : {ann, bob, kept}) leave(leases, lease, at(0));
  const auto asked = std::get<KeyLeaseTable::Acquire>(leases.join(kOther, kAnn, at(1))).lease;
  CHECK(leases.take_idle_for(asked, {Errc::BadToken, ""}, at(1)).empty());
  CHECK(leases.take_idle_for(asked, {Errc::QuotaBlocks, ""}, at(1)) == Numbers{ann});
  CHECK(leases.take_idle_for(asked, {Errc::PoolExhausted, ""}, at(1)) == Numbers{bob});
  CHECK(leases.take_idle_for(asked, {Errc::PoolExhausted, ""}, at(61)) == Numbers{kept});
  CHECK(leases.lease_of({"k5"}) == running);
}

TEST_CASE("key leases: a lease that was replaced in place is its key's again") {
  KeyLeaseTable leases(kIdle);
  const auto lease = open(leases, kKey, kAnn, at(0));
  leases.close(lease);
  CHECK_FALSE(leases.lease_of(kKey));
  leases.reopen(lease);
  CHECK(open(leases, kKey, kAnn, at(0)) == lease);
}
