/// Adapters with real processes: whose they are, what their revocation, removal and a changed file
/// mean for a text.
#include <catch2/catch.hpp>

#include "tests/support/system.hpp"
#include "tools/make_model/adapter.hpp"

namespace leasehold::testing {
namespace {

/// Adapters of the bundled model in the worker's directory. "tuned" is ann's; "bob" is a tenant
/// without adapters of its own.
class AdapterSystem {
 public:
  AdapterSystem() : system({.start_worker = false}) {
    std::filesystem::create_directory(directory());
    write("tuned.gguf", 1);
    system.start_ready_worker("w1", {}, {"--adapters", directory().string()});
    system.admit("ann", {"--max-adapters", "2", "--max-adapter-bytes", "64MiB"});
    system.admit("bob", {"--max-adapters", "2", "--max-adapter-bytes", "64MiB"});
    REQUIRE(add({"tuned", "--file", "tuned.gguf", "--tenant", "ann"}) == 0);
  }
  std::filesystem::path directory() const { return system.directory() / "adapters"; }
  void write(const std::string& name, std::uint64_t seed) {
    const make_model::AdapterRequest request{.model = {.shape = {.layers = 5,
                                                                 .embd = 128,
                                                                 .heads = 8,
                                                                 .kv_heads = 4,
                                                                 .ffn = 384,
                                                                 .vocab = 512,
                                                                 .context = 512}},
                                             .ranks = {4, 4, 4, 4, 4, 4, 4},
                                             .alpha = 4.0F,
                                             .seed = seed};
    (void)required(make_model::write_adapter(request, (directory() / name).string()));
  }
  int add(std::vector<std::string> words) {
    words.insert(words.begin(), {"adapters", "add"});
    return system.brokerctl(std::move(words));
  }
  std::vector<wire::LeaseView> adapter_leases() {
    std::vector<wire::LeaseView> leases = system.view().leases().value();
    std::erase_if(leases, [](const wire::LeaseView& lease) {
      return lease.scope != wire::LeaseScope::Adapter || lease.state != LeaseState::Live;
    });
    return leases;
  }

  System system;
};

TenantSpec text(const std::string& tenant, const std::string& adapter = {}) {
  TenantSpec spec{.tenant = tenant, .max_tokens = 150, .rebind = true};
  if (!adapter.empty()) spec.more = {"--adapter", adapter};
  return spec;
}

}  // namespace

TEST_CASE("adapters: a revocation in the middle of a token changes no text") {
  AdapterSystem test;
  System& system = test.system;
  const auto adapted = system.undisturbed(text("ann", "tuned"));
  const auto base = system.undisturbed(text("bob"));
  CHECK(adapted != base);
  REQUIRE(test.adapter_leases().size() == 1);
  const LeaseId lease = test.adapter_leases()[0].lease;

  const auto ann = system.start_streaming(text("ann", "tuned"), 4);
  const auto bob = system.start_streaming(text("bob"), 4);
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
    const auto bob = test.system.start_tenant(text("bob", name));
    CHECK(bob->finish() == exit_code(Errc::UnknownAdapter));
    CHECK(bob->record().tokens.empty());
  }
  CHECK(test.adapter_leases().empty());
}

TEST_CASE("adapters: after its removal a text goes on with its version, and a new one is refused") {
  AdapterSystem test;
  System& system = test.system;
  const auto adapted = system.undisturbed(text("ann", "tuned"));
  const auto running = system.start_streaming(text("ann", "tuned"), 4);
  REQUIRE(system.brokerctl({"adapters", "remove", "tuned"}) == 0);
  const auto refused = system.start_tenant(text("ann", "tuned"));
  CHECK(refused->finish() == exit_code(Errc::UnknownAdapter));
  CHECK(refused->record().tokens.empty());
  CHECK(running->finish() == 0);
  CHECK((running->record().tokens == adapted));
  CHECK(eventually([&] { return test.adapter_leases().empty(); }));
}

TEST_CASE("adapters: a file that changed is refused at a reload, and others go on") {
  AdapterSystem test;
  System& system = test.system;
  (void)system.undisturbed(text("ann", "tuned"));
  REQUIRE(test.adapter_leases().size() == 1);
  REQUIRE(system.brokerctl({"adapters", "unload", "tuned", "--worker", "w1"}) == 0);
  REQUIRE(eventually([&] { return test.adapter_leases().empty(); }));
  test.write("tuned.gguf", 2);
  const auto refused = system.start_tenant(text("ann", "tuned"));
  CHECK(refused->finish() == exit_code(Errc::FileCorrupt));
  CHECK(refused->record().tokens.empty());
  std::filesystem::remove(test.directory() / "tuned.gguf");
  CHECK(system.start_tenant(text("ann", "tuned"))->finish() == exit_code(Errc::MissingWeight));
  CHECK(system.start_tenant(text("ann"))->finish() == 0);
}

TEST_CASE("adapters: tenants share a shared adapter's lease") {
  AdapterSystem test;
  System& system = test.system;
  test.write("all.gguf", 3);
  REQUIRE(test.add({"all", "--file", "all.gguf", "--shared"}) == 0);
  const auto ann = system.undisturbed(text("ann", "all"));
  CHECK(ann == system.undisturbed(text("bob", "all")));
  CHECK(ann != system.undisturbed(text("ann", "tuned")));
  CHECK(test.adapter_leases().size() == 2);
}

}  // namespace leasehold::testing
