/// A tenant with a limit on tokens per minute, with real processes.
#include <catch2/catch.hpp>

#include "tests/support/system.hpp"

namespace leasehold::testing {

TEST_CASE("token rate: beyond its limit a tenant learns when to retry, until the limit is raised") {
  System system({.tenants = {"ann"}});
  const auto alone = system.undisturbed({.tenant = "ann"});
  // One minute's tokens are there at first, and the first request takes most of them.
  REQUIRE(system.brokerctl({"tenants", "remove", "ann"}) == 0);
  system.admit("ann", {"--tokens-per-minute", "200"});
  const auto first = system.start_tenant({.tenant = "ann"});
  check_whole(*first, alone);

  const auto second = system.start_tenant({.tenant = "ann"});
  CHECK(second->finish() == exit_code(Errc::QuotaTokens));
  CHECK(second->record().tokens.empty());
  const auto larger = system.start_tenant({.tenant = "ann", .max_tokens = 250});
  CHECK(larger->finish() == exit_code(Errc::BadRequest));  // no minute holds it

  REQUIRE(system.brokerctl({"tenants", "admit", "ann", "--tokens-per-minute", "10000000"}) == 0);
  const auto third = system.start_tenant({.tenant = "ann", .rebind = true});
  check_whole(*third, alone);
}

}  // namespace leasehold::testing
