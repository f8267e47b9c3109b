/// Texts that are published under a shared adapter, with real processes: their readers and their
/// ends.
#include <catch2/catch.hpp>

#include "tests/process/system/adapter_system.hpp"
#include "tests/process/system/published_texts.hpp"

namespace leasehold::testing {
namespace {

/// A worker with the shared adapter "tone", and the tenants ann, bob and eve.
struct TextSystem {
  explicit TextSystem(SystemSpec spec = {}) : test(std::move(spec)) {
    system.admit("eve");
    add_version(3);
  }
  void add_version(std::uint64_t seed) {
    const std::string name = "tone-" + std::to_string(seed) + ".gguf";
    test.write(name, seed);
    REQUIRE(test.add({"tone", "--file", name, "--shared"}) == 0);
  }
  int publish(const std::string& adapter) {
    return system.brokerctl({"prefix", "publish", "--file", write_text(system, kPublishedText),
                             "--worker", "w1", "--adapter", adapter});
  }
  std::vector<wire::LeaseView> texts() { return published_texts(system); }

  AdapterSystem test;
  System& system = test.system;
};

TenantSpec reader(const std::string& tenant, const std::string& adapter = "tone") {
  TenantSpec spec = adapter_text(tenant, adapter);
  spec.prompt = kPublishedText + " and";
  return spec;
}

}  // namespace

TEST_CASE("adapter texts: its requests read a published text, and go on when both are revoked") {
  TextSystem test;
  System& system = test.system;
  const auto cold = system.undisturbed(reader("ann"));
  REQUIRE(test.publish("tone") == 0);
  REQUIRE(test.texts().size() == 1);
  const LeaseId text = test.texts()[0].lease;
  CHECK(test.texts()[0].model == "tone@1");
  const LeaseId adapter = test.test.adapter_leases().at(0).lease;

  const auto ann = system.start_streaming(reader("ann"), 4);
  const auto bob = system.start_streaming(reader("bob"), 4);
  const auto eve = system.start_streaming(reader("eve", ""), 4);
  system.while_worker_stopped(
      [&] { REQUIRE(system.brokerctl({"revoke", "--adapter", "tone"}) == 0); });
  check_whole(*ann, cold);
  check_whole(*bob, cold);
  CHECK(eve->finish() == 0);
  CHECK(ann->record().revocations.size() == 1);
  CHECK(eve->record().revocations.empty());
  CHECK(system.eventually_fenced(text));
  CHECK(system.eventually_fenced(adapter));
  CHECK(test.texts().empty());
  for (const char* tenant : {"ann", "bob"}) CHECK(eventually_reads(system, tenant));
  CHECK(eventually([&] { return served(system, "eve").tokens > 0; }));
  CHECK(served(system, "eve").shared_hit_blocks == 0);
}

TEST_CASE("adapter texts: a new version ends the text of the old one with its last reader") {
  TextSystem test;
  System& system = test.system;
  const auto cold = system.undisturbed(reader("ann"));
  REQUIRE(test.publish("tone") == 0);
  const auto ann = system.start_streaming(reader("ann"), 4);
  test.add_version(4);
  CHECK(system.undisturbed(reader("bob")) != cold);
  check_whole(*ann, cold);  // keeps its version
  CHECK(ann->record().revocations.empty());
  CHECK(eventually([&] { return test.texts().empty(); }));
  CHECK(eventually([&] { return served(system, "bob").tokens > 0; }));
  CHECK(served(system, "bob").shared_hit_blocks == 0);
}

TEST_CASE("adapter texts: a tenant's own adapter is refused, and so is an unknown one") {
  TextSystem test;
  CHECK(test.publish("tuned") == exit_code(Errc::BadRequest));
  CHECK(test.publish("nothing") == exit_code(Errc::UnknownAdapter));
  std::filesystem::remove(test.test.directory() / "tone-3.gguf");
  CHECK(test.publish("tone") == exit_code(Errc::MissingWeight));
  CHECK(test.texts().empty());
}

}  // namespace leasehold::testing
