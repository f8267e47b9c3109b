/// A published text, with real processes: shared by two tenants, and revoked under both.
#include <catch2/catch.hpp>
#include <fstream>

#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

const std::string kText =
    "Once upon a time there was a little girl who lived in a small house near a big forest with "
    "her mother, her father and a cat that liked to sleep in the sun";

TenantSpec reader(const std::string& tenant) {
  return {.tenant = tenant, .prompt = kText + " and", .max_tokens = 200, .rebind = true};
}

std::string write_text(const System& system, const std::string& text) {
  const auto path = system.directory() / "text.txt";
  std::ofstream(path) << text;
  return path.string();
}

std::vector<wire::LeaseView> shared_leases(System& system) {
  std::vector<wire::LeaseView> leases = system.view().leases().value();
  std::erase_if(leases, [](const wire::LeaseView& lease) {
    return lease.scope != wire::LeaseScope::Shared || lease.state != LeaseState::Live;
  });
  return leases;
}

std::uint64_t shared_hits(System& system, const std::string& tenant) {
  std::uint64_t hits = 0;
  const std::vector<wire::TenantView> tenants = system.view().tenants().value();
  for (const wire::TenantView& view : tenants) {
    CHECK(view.served.cross_tenant_hits == 0);
    if (view.policy.tenant == TenantId{tenant}) hits = view.served.shared_hit_blocks;
  }
  return hits;
}

}  // namespace

TEST_CASE("shared prefix: two tenants read it, it is revoked, and both texts continue unchanged") {
  System system({.worker_arguments = {"--slow-motion-us", "100"}, .tenants = {"ann", "bob"}});
  const auto cold = system.undisturbed(reader("ann"));
  REQUIRE(system.brokerctl({"prefix", "publish", "--file", write_text(system, kText), "--worker",
                            "w1", "--name", "story"}) == 0);
  const auto published = shared_leases(system);
  REQUIRE(published.size() == 1);
  CHECK(published[0].part == "story");

  const auto ann = system.start_streaming(reader("ann"), 4);
  const auto bob = system.start_streaming(reader("bob"), 4);
  system.revoke_mid_request(published[0].lease);
  CHECK(ann->finish() == 0);
  CHECK(bob->finish() == 0);
  for (const Tenant* tenant : {ann.get(), bob.get()}) {
    CHECK((tenant->record().tokens == cold));
    CHECK(tenant->record().leases.size() == 1);  // the tenant's own lease was never lost
    CHECK(tenant->record().revocations.size() == 1);
  }
  for (const char* tenant : {"ann", "bob"})  // the worker reports what it served once a second
    CHECK(eventually([&] { return shared_hits(system, tenant) > 0; }));
  CHECK(system.eventually_fenced(published[0].lease));
  CHECK(shared_leases(system).empty());
}

TEST_CASE("shared prefix: a text is published once, and the list shows its blocks") {
  System system;
  const std::string file = write_text(system, kText);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(system.brokerctl({"prefix", "publish", "--file", file, "--worker", "w1"}) == 0);
    REQUIRE(shared_leases(system).size() == 1);
  }
  CHECK(shared_leases(system)[0].blocks > 0);
  CHECK(system.view().workers().value().at(0).arithmetic == "int8");
}

TEST_CASE("shared prefix: a text without a full block, or that is not UTF-8, publishes nothing") {
  System system;
  const std::string file = write_text(system, "hi");
  CHECK(system.brokerctl({"prefix", "publish", "--file", file, "--worker", "w1"}) ==
        exit_code(Errc::BadRequest));
  (void)write_text(system, "\xff\xfe");
  CHECK(system.brokerctl({"prefix", "publish", "--file", file, "--worker", "w1"}) ==
        exit_code(Errc::BadRequest));
  CHECK(shared_leases(system).empty());
  CHECK(system.pool_is_fully_free());
}

}  // namespace leasehold::testing
