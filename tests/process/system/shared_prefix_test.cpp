/// A published text, with real processes: shared by two tenants, and revoked under both.
#include <catch2/catch.hpp>

#include "tests/process/system/published_texts.hpp"

namespace leasehold::testing {
namespace {

TenantSpec reader(const std::string& tenant) {
  return {.tenant = tenant, .prompt = kPublishedText + " and", .max_tokens = 200, .rebind = true};
}

}  // namespace

TEST_CASE("shared prefix: two tenants read it, it is revoked, and both texts continue unchanged") {
  System system({.worker_arguments = {"--slow-motion-us", "100"}, .tenants = {"ann", "bob"}});
  const auto cold = system.undisturbed(reader("ann"));
  REQUIRE(system.brokerctl({"prefix", "publish", "--file", write_text(system, kPublishedText),
                            "--worker", "w1", "--name", "story"}) == 0);
  const auto published = published_texts(system);
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
    CHECK(eventually_reads(system, tenant));
  CHECK(system.eventually_fenced(published[0].lease));
  CHECK(published_texts(system).empty());
}

TEST_CASE("shared prefix: a text is published once, and the list shows its blocks") {
  System system;
  const std::string file = write_text(system, kPublishedText);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(system.brokerctl({"prefix", "publish", "--file", file, "--worker", "w1"}) == 0);
    REQUIRE(published_texts(system).size() == 1);
  }
  CHECK(published_texts(system)[0].blocks > 0);
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
  CHECK(published_texts(system).empty());
  CHECK(system.pool_is_fully_free());
}

}  // namespace leasehold::testing
