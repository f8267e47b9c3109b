#include "tools/brokerctl/arguments/tenant_arguments.hpp"

#include <CLI/CLI.hpp>

#include "common/cli/command_line.hpp"

namespace leasehold::brokerctl {
namespace {

CLI::App* add_verb(CLI::App& noun, const char* name, const char* help) {
  return noun.add_subcommand(name, help)->group("Verbs");
}

}  // namespace

std::array<CLI::App*, 2> TenantArguments::add_verbs(CLI::App& noun) {
  const auto add_tenant = [this](CLI::App* verb) {
    verb->add_option("tenant", tenant_, "Name of the tenant")->required()->check(check_name);
  };
  auto* admit = add_verb(noun, "admit",
                         "Create a tenant, or change the given limits of an existing one; "
                         "workers hear it at once, and no running request ends");
  add_tenant(admit);
  const auto limit = [admit](const char* name, auto& value, const char* help, std::int64_t low,
                             std::int64_t high) {
    admit->add_option(name, value, help)->check(CLI::Range(low, high));
  };
  wire::TenantAdmit& limits = admit_;
  limit("--max-concurrent", limits.max_concurrent,
        "Requests that run at once, over all workers; new tenant: 1", 1, 64);
  limit("--max-blocks", limits.max_blocks, "KV blocks over all leases; new tenant: 1024", 1,
        1 << 20);
  limit("--reserved-blocks", limits.reserved_blocks,
        "KV blocks kept for a guaranteed tenant, in whole extents; new tenant: 0", 0, 1 << 20);
  limit("--weight", limits.weight, "Share of a worker's time while tenants compete; new tenant: 1",
        1, 1000);
  admit
      ->add_option("--tier", tier_,
                   "Tier under memory pressure: scavengers give way to the reserves of guaranteed "
                   "tenants; new tenant: standard")
      ->check(CLI::IsMember({"guaranteed", "standard", "scavenger"}));
  limit("--ttl-ms", limits.ttl_ms, "Lifetime of a lease without renewal; new tenant: 10000", 100,
        86'400'000);
  limit(
      "--max-lifetime-ms", limits.max_lifetime_ms,
      "Longest lifetime with renewals, of later leases; new tenant: no limit; never removed later",
      100, 1'000'000'000'000);
  limit("--rebinds-per-minute", limits.rebinds_per_minute,
        "Revoked leases that may be replaced per minute; new tenant: 600", 1, 6'000'000);
  limit("--rebind-burst", limits.rebind_burst,
        "Revoked leases that may be replaced at once; new tenant: 256", 1, 1 << 20);
  limit(
      "--tokens-per-minute", limits.tokens_per_minute,
      "Computed prompt tokens and emitted tokens per minute, over all workers, and of one request "
      "at most; each worker also keeps what the tenant left there, up to a minute's; new tenant: "
      "no limit",
      1, 10'000'000);
  limit("--uid", limits.uid,
        "User id that may act for the tenant; new tenant: any; changed later, never removed", 0,
        ~std::uint32_t{0});
  auto* remove = add_verb(noun, "remove",
                          "Forget a tenant: later calls for it get UnknownTenant; refused while "
                          "it has live leases");
  add_tenant(remove);
  remove->add_flag("--revoke", revokes_, "Revoke its live leases (policy_changed)");
  return {admit, remove};
}

Result<Verb> TenantArguments::verb(const std::string& verb, RequestId request_id) const {
  if (verb == "remove") {
    return wire::TenantRemove{.tenant = TRY(TenantId::parse(tenant_)),
                              .revoke = revokes_,
                              .request_id = std::move(request_id)};
  }
  wire::TenantAdmit admit = admit_;
  admit.tenant = TRY(TenantId::parse(tenant_));
  for (const auto tier : {wire::Tier::Guaranteed, wire::Tier::Standard, wire::Tier::Scavenger}) {
    if (wire::name(tier) == tier_) admit.tier = tier;
  }
  admit.request_id = std::move(request_id);
  return admit;
}

}  // namespace leasehold::brokerctl
