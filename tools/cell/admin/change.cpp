#include "tools/cell/admin/change.hpp"

#include <fmt/format.h>

#include "common/errc.hpp"
#include "ipc/control/messages/rates.hpp"
#include "tools/cell/admin/change_tenant.hpp"
#include "tools/cell/admin/views.hpp"
#include "tools/cell/decide/tenant_change.hpp"

namespace leasehold::cell {
namespace {

/// Hosts write the ledger of a busy tenant several times a second.
constexpr int kMaxAttempts = 50;

constexpr Share kNewTenant{
    .concurrent = 1, .blocks = 1024, .reserved = 0, .tokens_per_minute = wire::kMostPerMinute};

Result<Share> merged(const Share& old, const Limits& limits) {
  const Share share{.concurrent = limits.concurrent.value_or(old.concurrent),
                    .blocks = limits.blocks.value_or(old.blocks),
                    .reserved = limits.reserved.value_or(old.reserved),
                    .tokens_per_minute = limits.tokens_per_minute.value_or(old.tokens_per_minute)};
  if (share.reserved <= share.blocks) return share;
  return fail(Errc::BadRequest, fmt::format("{} reserved blocks are more than {} blocks; lower "
                                            "--reserved-blocks or raise --max-blocks",
                                            share.reserved, share.blocks));
}

Result<etcd::KeyValue> read_member(const Calls& calls, const HostName& host) {
  auto entry = TRY(read_one(calls, calls.keys.host(host)));
  if (entry) return *std::move(entry);
  return fail(
      Errc::UnknownWorker,
      fmt::format("{} is not a member of the cell; see `brokerctl cell hosts`", host.value));
}

}  // namespace

Result<TenantChange> change_tenant(const Calls& calls, const TenantId& tenant,
                                   const MakeChange& make) {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const TenantView view = TRY(read_view(calls, tenant));
    const etcd::Transaction change = TRY(make(view));
    const auto reply = TRY(calls.commit(change));
    if (reply.succeeded)
      return TenantChange{.tenant = tenant, .before = view, .changed = reply.revision};
  }
  return fail(Errc::TimedOut,
              fmt::format("hosts changed the parts of tenant {} {} times while it was changed; "
                          "nothing was changed, try again",
                          tenant.value, kMaxAttempts));
}

Answer name_answer(const char* title, const std::string& field, const std::string& name) {
  return {
      .table = {.columns = {{title}}, .rows = {{name}}}, .notes = {}, .document = {{field, name}}};
}

Result<Answer> finish(const Calls& calls, Answer answer, const TenantChange& change, Wait wait) {
  if (wait) TRY(wait_for_hosts(calls, change, *wait, answer));
  return answer;
}

Result<Answer> admit_tenant(const Calls& calls, const TenantId& tenant, const Limits& limits,
                            Wait wait) {
  const auto admission = [&](const TenantView& view) -> Result<etcd::Transaction> {
    const bool is_new = view.policy_modified.value == 0 || view.policy.limits.is_zero();
    const Share share = TRY(merged(is_new ? kNewTenant : view.policy.limits, limits));
    const AdapterLimits old = is_new ? AdapterLimits() : view.policy.adapters;
    const AdapterLimits adapters{.count = limits.adapters.value_or(old.count),
                                 .bytes = limits.adapter_bytes.value_or(old.bytes)};
    return change_of(calls.keys, tenant, {.limits = share, .adapters = adapters}, view);
  };
  const TenantChange change = TRY(change_tenant(calls, tenant, admission));
  return finish(calls, name_answer("TENANT", "tenant", tenant.value), change, wait);
}

/// A tenant that was removed before is only waited for.
Result<Answer> remove_tenant(const Calls& calls, const TenantId& tenant, Wait wait) {
  const TenantView view = TRY(read_view(calls, tenant));
  if (view.policy_modified.value == 0) return unknown_tenant(tenant);
  TenantChange change{.tenant = tenant, .before = view, .changed = view.policy_modified};
  if (!view.policy.limits.is_zero()) {
    change =
        TRY(change_tenant(calls, tenant, [&](const TenantView& now) -> Result<etcd::Transaction> {
          return change_of(calls.keys, tenant, CellPolicy(), now);
        }));
  }
  return finish(calls, name_answer("TENANT REMOVED", "tenant", tenant.value), change, wait);
}

Result<Answer> drain_host(const Calls& calls, const HostName& host, bool is_draining) {
  (void)TRY(read_member(calls, host));
  const std::string text = text_of(WantedHost{.is_draining = is_draining});
  (void)TRY(calls.commit(
      {.conditions = {}, .success = {etcd::Put{calls.keys.wanted(host), text}}, .failure = {}}));
  return name_answer(is_draining ? "DRAINS" : "SERVES", "host", host.value);
}

Result<Answer> expire_host(const Calls& calls, const HostName& host) {
  const etcd::KeyValue member = TRY(read_member(calls, host));
  const etcd::Transaction expire{
      .conditions = {etcd::Compare::modified_at(member.key, member.modified)},
      .success = {etcd::Delete{etcd::KeyRange::one(member.key)}},
      .failure = {}};
  if (TRY(calls.commit(expire)).succeeded) return name_answer("EXPIRED", "host", host.value);
  return fail(Errc::IllegalTransition,
              fmt::format("host {} has beaten just now, so it is not stopped; stop its agent first",
                          host.value));
}

}  // namespace leasehold::cell
