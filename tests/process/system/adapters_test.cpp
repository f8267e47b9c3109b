/// Adapters with real processes: whose they are, what their revocation, removal and a changed file
/// mean for a text.
#include <catch2/catch.hpp>

#include "tests/process/system/adapter_system.hpp"

namespace leasehold::testing {

TEST_CASE("adapters: a revocation in the middle of a token changes no text") {
  AdapterSystem test;
  System& system = test.system;
  const auto adapted = system.undisturbed(adapter_text("ann", "tuned"));
  const auto base = system.undisturbed(adapter_text("bob"));
  CHECK(adapted != base);
  REQUIRE(test.adapter_leases().size() == 1);
  const LeaseId lease = test.adapter_leases()[0].lease;

  const auto ann = system.start_streaming(adapter_text("ann", "tuned"), 4);
  const auto bob = system.start_streaming(adapter_text("bob"), 4);
  system.revoke_mid_request(lease);
  CHECK(ann->finish() == 0);
  CHECK(bob->finish() == 0);
  CHECK((ann->record().tokens == adapted));
  CHECK((bob->record().tokens == base));
  CHECK(ann->record().leases.size() == 1);  // its own lease was never lost
  CHECK(ann->record().revocations.size() == 1);
  CHECK(bob->record().revocations.empty());
  CHECK(system.eventually_fenced(lease));
  REQUIRE(test.adapter_leases().size() == 1);
  CHECK(test.adapter_leases()[0].lease != lease);
}

TEST_CASE("adapters: another tenant's adapter is unknown, and never answered by the base model") {
  AdapterSystem test;
  for (const char* name : {"tuned", "no-such-one"}) {
    const auto bob = test.system.start_tenant(adapter_text("bob", name));
    CHECK(bob->finish() == exit_code(Errc::UnknownAdapter));
    CHECK(bob->record().tokens.empty());
  }
  CHECK(test.adapter_leases().empty());
}

TEST_CASE("adapters: after its removal a text goes on with its version, and a new one is refused") {
  AdapterSystem test;
  System& system = test.system;
  const auto adapted = system.undisturbed(adapter_text("ann", "tuned"));
  const auto running = system.start_streaming(adapter_text("ann", "tuned"), 4);
  REQUIRE(system.brokerctl({"adapters", "remove", "tuned"}) == 0);
  const auto refused = system.start_tenant(adapter_text("ann", "tuned"));
  CHECK(refused->finish() == exit_code(Errc::UnknownAdapter));
  CHECK(refused->record().tokens.empty());
  CHECK(running->finish() == 0);
  CHECK((running->record().tokens == adapted));
  CHECK(eventually([&] { return test.adapter_leases().empty(); }));
}

TEST_CASE("adapters: a file that changed is refused at a reload, and others go on") {
  AdapterSystem test;
  System& system = test.system;
  (void)system.undisturbed(adapter_text("ann", "tuned"));
  REQUIRE(test.adapter_leases().size() == 1);
  REQUIRE(system.brokerctl({"adapters", "unload", "tuned", "--worker", "w1"}) == 0);
  REQUIRE(eventually([&] { return test.adapter_leases().empty(); }));
  test.write("tuned.gguf", 2);
  const auto refused = system.start_tenant(adapter_text("ann", "tuned"));
  CHECK(refused->finish() == exit_code(Errc::FileCorrupt));
  CHECK(refused->record().tokens.empty());
  std::filesystem::remove(test.directory() / "tuned.gguf");
  CHECK(system.start_tenant(adapter_text("ann", "tuned"))->finish() ==
        exit_code(Errc::MissingWeight));
  CHECK(system.start_tenant(adapter_text("ann"))->finish() == 0);
}

TEST_CASE("adapters: tenants share a shared adapter's lease") {
  AdapterSystem test;
  System& system = test.system;
  test.write("all.gguf", 3);
  REQUIRE(test.add({"all", "--file", "all.gguf", "--shared"}) == 0);
  const auto ann = system.undisturbed(adapter_text("ann", "all"));
  CHECK(ann == system.undisturbed(adapter_text("bob", "all")));
  CHECK(ann != system.undisturbed(adapter_text("ann", "tuned")));
  CHECK(test.adapter_leases().size() == 2);
}

TEST_CASE("adapters: a text whose adapter was removed and revoked ends with UnknownAdapter") {
  AdapterSystem test;
  System& system = test.system;
  const auto adapted = system.undisturbed(adapter_text("ann", "tuned"));
  const LeaseId lease = test.adapter_leases().at(0).lease;
  const auto ann = system.start_streaming(adapter_text("ann", "tuned"), 4);
  REQUIRE(system.brokerctl({"adapters", "remove", "tuned"}) == 0);
  system.revoke_mid_request(lease);
  CHECK(ann->finish() == exit_code(Errc::UnknownAdapter));
  CHECK(is_prefix(ann->record().tokens, adapted));
  CHECK(ann->record().tokens.size() < adapted.size());
}

TEST_CASE("adapters: one that does not fit, is damaged or exceeds a quota is refused by its code") {
  AdapterSystem test;
  make_model::ModelShape wide = kBundledShape;
  wide.embd *= 2;
  test.write("wide.gguf", 1, wide);
  test.write("short.gguf", 1);
  std::filesystem::resize_file(test.directory() / "short.gguf", 4000);
  for (const auto& [name, code] :
       {std::pair("wide", Errc::UnsupportedModel), std::pair("short", Errc::FileCorrupt)}) {
    REQUIRE(test.add({name, "--file", std::string(name) + ".gguf", "--tenant", "ann"}) == 0);
    CHECK(test.system.start_tenant(adapter_text("ann", name))->finish() == exit_code(code));
  }
  REQUIRE(test.system.brokerctl({"tenants", "admit", "ann", "--max-adapter-bytes", "1KiB"}) == 0);
  CHECK(test.system.start_tenant(adapter_text("ann", "tuned"))->finish() ==
        exit_code(Errc::QuotaAdapters));
  CHECK(test.adapter_leases().empty());
  CHECK(test.system.start_tenant(adapter_text("ann"))->finish() == 0);
}

TEST_CASE("adapters: a worker that attaches later loads those that were registered before") {
  AdapterSystem test;
  const auto adapted = test.system.undisturbed(adapter_text("ann", "tuned"));
  test.start_worker("w2");
  TenantSpec later = adapter_text("ann", "tuned");
  later.more.insert(later.more.end(), {"--worker", "w2"});
  CHECK(test.system.undisturbed(later) == adapted);
  CHECK(test.adapter_leases().size() == 2);
}

}  // namespace leasehold::testing
