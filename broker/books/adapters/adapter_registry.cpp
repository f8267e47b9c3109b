#include "broker/books/adapters/adapter_registry.hpp"

#include <fmt/format.h>

#include "ipc/control/messages/adapters/adapters.hpp"

namespace leasehold {
namespace {

std::string owner_text(const TenantId& owner) {
  return owner.value.empty() ? "is shared" : "belongs to tenant " + owner.value;
}

}  // namespace

Result<std::uint32_t> AdapterRegistry::add(journal::AdapterRow adapter) {
  const auto known = adapters_.find(adapter.id);
  const bool is_new = known == adapters_.end();
  const bool is_live = !is_new && !known->second.removed;
  if (is_live && known->second.tenant != adapter.tenant) {
    return fail(Errc::BadRequest, fmt::format("adapter {} {}; remove it first with `brokerctl "
                                              "adapters remove`, or choose another name",
                                              adapter.id.value, owner_text(known->second.tenant)));
  }
  if (!is_live && of(adapter.tenant).size() >= wire::kMaxAdaptersPerOwner) {
    return fail(Errc::QuotaAdapters,
                fmt::format("{} adapters of this owner are registered, the most; remove one with "
                            "`brokerctl adapters remove`",
                            wire::kMaxAdaptersPerOwner));
  }
  if (is_new && adapters_.size() >= wire::kMaxAdapters) {
    return fail(Errc::QuotaAdapters,
                fmt::format("{} names were registered, removed ones included, the most that a "
                            "broker keeps; use one of them again",
                            wire::kMaxAdapters));
  }
  adapter.version = is_new ? 1 : known->second.version + 1;
  adapter.digest.clear();
  adapter.removed = false;
  const std::uint32_t version = adapter.version;
  restore(adapter);
  return version;
}

void AdapterRegistry::remove(const AdapterName& name) {
  const auto found = adapters_.find(name);
  if (found != adapters_.end()) found->second.removed = true;
}

const journal::AdapterRow* AdapterRegistry::find(const AdapterName& name) const {
  const auto found = adapters_.find(name);
  return found == adapters_.end() || found->second.removed ? nullptr : &found->second;
}

const journal::AdapterRow* AdapterRegistry::find_for(const std::optional<TenantId>& tenant,
                                                     const AdapterName& name) const {
  const journal::AdapterRow* found = find(name);
  if (found == nullptr || found->tenant.value.empty()) return found;
  return tenant && found->tenant == *tenant ? found : nullptr;
}

std::vector<AdapterName> AdapterRegistry::of(const TenantId& owner) const {
  std::vector<AdapterName> names;
  for (const auto& [name, row] : adapters_) {
    if (!row.removed && row.tenant == owner) names.push_back(name);
  }
  return names;
}

Error unknown_adapter(const AdapterName& name) {
  return {Errc::UnknownAdapter, fmt::format("no adapter {} for this tenant", name.value)};
}

}  // namespace leasehold
