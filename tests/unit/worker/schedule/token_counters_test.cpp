#include "worker/schedule/tenants/token_counters.hpp"

#include <catch2/catch.hpp>

namespace leasehold {
namespace {

const TenantId kAnn{"ann"};
const TenantId kBob{"bob"};

void serve(TokenCounters& counters, const TenantId& tenant, std::uint64_t tokens,
           std::uint32_t weight = 1) {
  *counters.set_active(tenant, true) += TokenCounters::cost(tokens, weight);
}

TokenCounters::Count count_of(TokenCounters& counters, const TenantId& tenant) {
  return *counters.set_active(tenant, true);
}

}  // namespace

TEST_CASE("token counters: a token costs a tenant of weight 3 a third") {
  CHECK(TokenCounters::cost(3, 3) == TokenCounters::cost(1, 1));
  // The largest weight is exact to less than a thousandth, also for one token.
  CHECK(1000 * 1000 * TokenCounters::cost(1, 1000) >= 999 * TokenCounters::cost(1, 1));
}

TEST_CASE("token counters: idle time gives no credit") {
  TokenCounters counters;
  counters.set_active(kAnn, true);
  serve(counters, kAnn, 100);
  CHECK(count_of(counters, kBob) == count_of(counters, kAnn));
}

TEST_CASE("token counters: a tenant that returns keeps what it was served beyond the others") {
  TokenCounters counters;
  counters.set_active(kAnn, true);
  counters.set_active(kBob, true);
  serve(counters, kAnn, 100);
  serve(counters, kBob, 30);
  const TokenCounters::Count before = count_of(counters, kAnn);
  counters.set_active(kAnn, false);
  CHECK(count_of(counters, kAnn) == before);
  CHECK(count_of(counters, kBob) < before);
}

TEST_CASE("token counters: when all were idle, the next tenant starts with the last one") {
  TokenCounters counters;
  counters.set_active(kAnn, true);
  serve(counters, kAnn, 100);
  CHECK(counters.set_active(kAnn, false) == nullptr);
  CHECK(count_of(counters, kBob) == TokenCounters::cost(100, 1));
}

TEST_CASE("token counters: the count of an active tenant stays where it is") {
  TokenCounters counters;
  TokenCounters::Count* const count = counters.set_active(kAnn, true);
  *count += 5;
  for (int i = 0; i < 100; ++i) {
    const TenantId guest{"guest" + std::to_string(i)};
    counters.set_active(guest, true);
    counters.set_active(guest, false);
  }
  CHECK(counters.set_active(kAnn, true) == count);
  CHECK(*count == 5);
}

TEST_CASE("token counters: the counter of a tenant that would be lifted is forgotten") {
  TokenCounters counters;
  counters.set_active(kAnn, true);
  for (int i = 0; i < 1000; ++i) {
    const TenantId guest{"guest" + std::to_string(i)};
    counters.set_active(guest, true);
    serve(counters, guest, 1);
    serve(counters, kAnn, 2);
    counters.set_active(guest, false);
  }
  CHECK(counters.size() == 1);
}

}  // namespace leasehold
