#include "broker/decide/lease/named_leases.hpp"

#include <fmt/format.h>

#include "broker/decide/lease/revoke.hpp"

namespace leasehold {

Result<std::vector<LeaseId>> leases_named(State& state, const std::optional<LeaseId>& lease,
                                          const std::optional<TenantId>& tenant) {
  if (lease.has_value() == tenant.has_value()) {
    return fail(Errc::BadRequest,
                fmt::format("name exactly one of lease and tenant; {} were given", lease ? 2 : 0));
  }
  if (lease) {
    const LeaseRecord& record = *TRY(state.leases.find(*lease));
    if (record.is(LeaseState::Fenced)) {
      return std::unexpected(Error{Errc::LeaseFenced,
                                   fmt::format("lease {} is fenced already ({})", to_string(*lease),
                                               name(reason_of(record.lease))),
                                   failure_scope_of(record)});
    }
    return std::vector{*lease};
  }
  if (state.tenants.find(*tenant) == nullptr) {
    return fail(Errc::UnknownTenant,
                fmt::format("no tenant {}; see `brokerctl tenants`", tenant->value));
  }
  return open_leases_where(state, [&](const LeaseRecord& record) {
    return record.scope == wire::LeaseScope::Tenant && record.tenant == *tenant &&
           record.is(LeaseState::Live);
  });
}

std::string object_name(const std::optional<LeaseId>& lease,
                        const std::optional<TenantId>& tenant) {
  return lease ? "lease:" + to_string(*lease) : "tenant:" + tenant->value;
}

}  // namespace leasehold
