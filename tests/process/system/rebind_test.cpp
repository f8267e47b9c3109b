/// A tenant whose leases are revoked again and again, with real processes.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

const TenantSpec kAnn{.tenant = "ann", .max_tokens = 400, .rebind = true};

bool is_limited(const demo::TenantEvent& event) {
  return event.event == "retry" && event.why == "RebindRateLimited";
}

bool was_limited(const demo::TenantRecord& record) {
  return std::ranges::any_of(record.reported, is_limited);
}

}  // namespace

TEST_CASE("rebind storm: the tenant meets its limit, waits as told, and its text is the same") {
  System system;
  system.admit("ann", {"--rebinds-per-minute", "6", "--rebind-burst", "1"});
  const auto alone = system.undisturbed(kAnn);
  const auto ann = system.start_streaming(kAnn, 4);
  // A token comes back every 10 s, so the second revocation meets the limit unless the machine
  // stalls for that long.
  for (std::size_t revocations = 1; revocations <= 10 && !was_limited(ann->record());
       ++revocations) {
    system.revoke_mid_request("ann");
    const std::size_t tokens = ann->record().tokens.size();
    REQUIRE(ann->read_until([&](const demo::TenantRecord& record) {
      const bool continues = record.leases.size() == revocations + 1;
      return was_limited(record) || (continues && record.tokens.size() >= tokens + 4);
    }));
  }

  REQUIRE(was_limited(ann->record()));
  CHECK(ann->finish() == 0);
  CHECK((ann->record().tokens == alone));
  // One refusal, then a lease: the tenant has waited for as long as the broker said.
  const auto& reported = ann->record().reported;
  const auto limited = std::ranges::find_if(reported, is_limited);
  CHECK(std::ranges::count_if(reported, is_limited) == 1);
  CHECK(std::next(limited)->event == "acquired");
}

}  // namespace leasehold::testing
