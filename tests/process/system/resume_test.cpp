/// A resumable request whose client dies or is replaced, with real processes.
#include <signal.h>

#include <catch2/catch.hpp>

#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

const TenantSpec kPlain{.tenant = "ann", .max_tokens = 400};
const TenantSpec kResumable{
    .tenant = "ann", .max_tokens = 400, .more = {"--resumable", "--request-id", "story"}};

}  // namespace

TEST_CASE("a tenant killed mid-decode and started again prints the whole text") {
  System system({.tenants = {"ann"}});
  const auto alone = system.undisturbed(kPlain);
  const auto killed = system.start_tenant(kResumable);
  REQUIRE(killed->read_tokens(20));
  const LeaseId lease = killed->record().leases.back();

  REQUIRE(killed->child().signal(SIGKILL));
  REQUIRE(system.eventually_fenced(lease));
  const auto again = system.start_tenant(kResumable);

  check_whole(*again, alone);
  CHECK(again->record().leases.back() != lease);
  CHECK(system.pool_is_fully_free());
}

TEST_CASE("the same request from a second process is not generated twice") {
  System system({.tenants = {"ann"}});
  const auto alone = system.undisturbed(kPlain);
  const auto first = system.start_tenant(kResumable);
  REQUIRE(first->read_tokens(20));
  TenantSpec rebinding = kResumable;
  rebinding.rebind =
      true;  // the first process may end, and with it the lease that the text runs under
  const auto second = system.start_tenant(rebinding);
  REQUIRE(second->read_tokens(5));

  REQUIRE(first->child().signal(SIGKILL));

  check_whole(*second, alone);
  CHECK(system.pool_is_fully_free());
}

}  // namespace leasehold::testing
