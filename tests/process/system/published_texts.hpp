/// Published texts, as a broker shows them.
#pragma once

#include <fstream>

#include "tests/support/system.hpp"

namespace leasehold::testing {

inline const std::string kPublishedText =
    "Once upon a time there was a little girl who lived in a small house near a big forest with "
    "her mother, her father and a cat that liked to sleep in the sun";

/// Writes the text to a file, and returns its path.
inline std::string write_text(const System& system, const std::string& text) {
  const auto path = system.directory() / "text.txt";
  std::ofstream(path) << text;
  return path.string();
}

/// The live leases of published texts.
inline std::vector<wire::LeaseView> published_texts(System& system) {
  std::vector<wire::LeaseView> leases = system.view().leases().value();
  std::erase_if(leases, [](const wire::LeaseView& lease) {
    return lease.scope != wire::LeaseScope::Shared || lease.state != LeaseState::Live;
  });
  return leases;
}

/// What workers have reported of a tenant, which they do once a second.
inline wire::TenantServed served(System& system, const std::string& tenant) {
  wire::TenantServed of_tenant;
  const std::vector<wire::TenantView> tenants = system.view().tenants().value();
  for (const wire::TenantView& view : tenants) {
    CHECK(view.served.cross_tenant_hits == 0);
    if (view.policy.tenant == TenantId{tenant}) of_tenant = view.served;
  }
  return of_tenant;
}

/// True once a worker reports that the tenant used blocks of a published text.
inline bool eventually_reads(System& system, const std::string& tenant) {
  return eventually([&] { return served(system, tenant).shared_hit_blocks > 0; });
}

}  // namespace leasehold::testing
