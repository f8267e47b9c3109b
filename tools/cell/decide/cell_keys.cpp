#include "tools/cell/decide/cell_keys.hpp"

namespace leasehold::cell {
namespace {

template <class Name>
std::optional<Name> name_behind(const std::string& prefix, std::string_view key) {
  if (!key.starts_with(prefix)) return std::nullopt;
  auto name = Name::parse(key.substr(prefix.size()));
  return name ? std::optional(*std::move(name)) : std::nullopt;
}

}  // namespace

std::optional<HostName> CellKeys::host_in(std::string_view key) const {
  return name_behind<HostName>(hosts().first, key);
}

std::optional<TenantId> CellKeys::tenant_in(std::string_view key) const {
  return name_behind<TenantId>(tenants().first, key);
}

std::optional<ApiKeyId> CellKeys::api_key_in(std::string_view key) const {
  return name_behind<ApiKeyId>(keys().first, key);
}

std::optional<TenantId> CellKeys::tenant_in_mail(const HostName& host, std::string_view key) const {
  return name_behind<TenantId>(mail_of(host).first, key);
}

}  // namespace leasehold::cell
