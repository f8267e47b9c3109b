/// A system with adapters of the bundled model, for tests.
#pragma once

#include "tests/support/system.hpp"
#include "tools/make_model/adapter.hpp"

namespace leasehold::testing {

/// The bundled model's shape.
inline constexpr make_model::ModelShape kBundledShape{
    .layers = 5, .embd = 128, .heads = 8, .kv_heads = 4, .ffn = 384, .vocab = 512, .context = 512};

/// Adapters of the bundled model in the worker's directory. "tuned" is ann's; "bob" is a tenant
/// without adapters of its own.
class AdapterSystem {
 public:
  /// `worker_fault`: LEASEHOLD_FAULT of the worker; empty: none.
  explicit AdapterSystem(SystemSpec spec = {}, const std::string& worker_fault = {})
      : system(without_worker(std::move(spec))) {
    std::filesystem::create_directory(directory());
    write("tuned.gguf", 1);
    start_worker("w1", worker_fault);
    system.admit("ann", {"--max-adapters", "2", "--max-adapter-bytes", "64MiB"});
    system.admit("bob", {"--max-adapters", "2", "--max-adapter-bytes", "64MiB"});
    REQUIRE(add({"tuned", "--file", "tuned.gguf", "--tenant", "ann"}) == 0);
  }
  std::filesystem::path directory() const { return system.directory() / "adapters"; }
  void start_worker(const std::string& name, const std::string& fault = {}) {
    system.start_ready_worker(name, fault, {"--adapters", directory().string()});
  }
  void write(const std::string& name, std::uint64_t seed,
             const make_model::ModelShape& shape = kBundledShape) {
    const make_model::AdapterRequest request{
        .model = {.shape = shape}, .ranks = {4, 4, 4, 4, 4, 4, 4}, .alpha = 4.0F, .seed = seed};
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

 private:
  static SystemSpec without_worker(SystemSpec spec) {
    spec.start_worker = false;
    return spec;
  }
};

/// A request of the tenant, under an adapter or the base model, that continues after revocations.
inline TenantSpec adapter_text(const std::string& tenant, const std::string& adapter = {}) {
  TenantSpec spec{.tenant = tenant, .max_tokens = 150, .rebind = true};
  if (!adapter.empty()) spec.more = {"--adapter", adapter};
  return spec;
}

}  // namespace leasehold::testing
