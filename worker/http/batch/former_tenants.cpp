#include "worker/http/batch/former_tenants.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "ipc/http/async_value.hpp"

namespace leasehold::http {
namespace {

using batch::BatchStore;
using batch::Owner;
using boost::asio::awaitable;

/// The next owners to ask about, at most one call's.
wire::TenantCheck next_check(const std::vector<Owner>& owners, std::size_t from) {
  const std::size_t end = std::min(owners.size(), from + wire::TenantCheck::kMaxTenants);
  wire::TenantCheck check;
  for (std::size_t i = from; i < end; ++i) {
    wire::TenantAdmission& each = check.tenants.emplace_back();
    each.tenant = owners[i].tenant;
    each.admitted_unix_ms = owners[i].admitted_unix_ms;
  }
  return check;
}

}  // namespace

void FormerTenants::remove(const Owner& owner) {
  const BatchStore::Removed removed = store_.remove_owner(owner);
  if (removed.files + removed.batches == 0) return;
  spdlog::info("files of a removed tenant deleted tenant={} files={} batches={}",
               owner.tenant.value, removed.files, removed.batches);
}

awaitable<void> FormerTenants::sweep(std::shared_ptr<Shared> shared) {
  const std::vector<Owner> owners = store_.owners();
  std::set<Owner> named;
  for (std::size_t from = 0; from < owners.size(); from += wire::TenantCheck::kMaxTenants) {
    const wire::TenantCheck check = next_check(owners, from);
    AsyncValue<Result<wire::TenantCheck>> checked(*shared->deps.io);
    shared->deps.check_tenants(check, checked.giver());
    const auto gone = co_await checked.take();
    if (!gone || !*gone) co_return;
    for (const wire::TenantAdmission& each : (*gone)->tenants)
      named.insert({each.tenant, each.admitted_unix_ms});
  }
  const std::set<Owner> before = std::exchange(gone_, {});
  for (const Owner& owner : named)
    before.contains(owner) ? remove(owner) : static_cast<void>(gone_.insert(owner));
}

}  // namespace leasehold::http
