#include "tools/cell/tenant_steps.hpp"

#include <fmt/format.h>

#include <utility>

#include "common/fault_point.hpp"
#include "common/random.hpp"
#include "common/unix_time.hpp"
#include "ipc/control/messages.hpp"
#include "ipc/control/tokens/api_key.hpp"
#include "ipc/http/http_await.hpp"
#include "tools/cell/decide/broker_part.hpp"
#include "tools/cell/decide/host_key.hpp"

namespace leasehold::cell {

using boost::asio::awaitable;

namespace {

/// Workers without requests to end confirm a limit sooner.
constexpr Duration kConfirmTime = std::chrono::milliseconds(20);

/// Answers all workers that wait for this key.
void answer_asked(HostTenant& tenant, const std::string& hash, const Result<void>& result) {
  std::erase_if(tenant.asked, [&](const auto& asked) {
    if (asked->hash != hash) return false;
    asked->result = result;
    asked->ready.cancel();
    return true;
  });
}

}  // namespace

// ---------------------------------------------------------------- the broker's state

awaitable<Result<void>> TenantSteps::resume(HostTenant& tenant, const PartOwner& owner) {
  const wire::TenantList one{.tenant = tenant.id, .after = {}};
  const auto reply = co_await broker_.call(one);
  if (!reply) co_return std::unexpected(reply.error());
  const auto views = client::parse_items<wire::TenantView>(*reply);
  if (!views) co_return std::unexpected(views.error());
  tenant.keys.clear();
  if (views->empty()) {
    tenant.part.resumed(owner, {}, {});
  } else {
    const wire::TenantView& view = views->front();
    const BrokerLimit limit = limit_in(view, owner.incarnation);
    if (view.policy.cell != cell_) {
      co_return fail(Errc::IllegalTransition,
                     fmt::format("the broker of this host has a tenant {} of its own; remove or "
                                 "rename one of them",
                                 tenant.id.value));
    }
    const auto may_run = may_run_at_resume(view, owner.incarnation);
    if (!may_run) co_return Result<void>();
    const wire::KeyList of_tenant{.tenant = tenant.id, .after = {}};
    const auto listed = co_await broker_.call(of_tenant);
    if (!listed) co_return std::unexpected(listed.error());
    const auto keys = client::parse_items<wire::KeyView>(*listed);
    if (!keys) co_return std::unexpected(keys.error());
    for (const wire::KeyView& key : *keys) tenant.keys.try_emplace(key.key);
    tenant.part.resumed(owner, limit, *may_run);
  }
  tenant.sent = tenant.part.limit().revision;
  tenant.is_at_broker = !views->empty();
  tenant.is_resumed = true;
  co_return Result<void>();
}

/// A limit of zero needs no message for a tenant that the broker does not have.
awaitable<Result<void>> TenantSteps::send_limit(HostTenant& tenant, const PartOwner& owner) {
  const BrokerLimit limit = tenant.part.limit();
  if (limit.revision == tenant.sent) co_return Result<void>();
  if (!tenant.is_at_broker && !can_run(limit.share)) {
    tenant.sent = limit.revision;
    tenant.part.confirmed(limit.revision, {});
    co_return Result<void>();
  }
  tenant.is_at_broker = true;  // also when the reply is lost
  const wire::CellAdmit admission = admission_of(cell_, tenant.id, owner, limit);
  const auto reply = co_await broker_.call(admission);
  if (!reply) co_return std::unexpected(reply.error());
  fault_point(FaultSite::CellPartAdmitted);
  const auto part = client::parse_message<wire::CellPart>(*reply);
  if (!part) co_return std::unexpected(part.error());
  if (part->revision == limit.revision) {
    tenant.sent = limit.revision;
    co_return Result<void>();
  }
  tenant.is_resumed = false;
  co_return fail(
      Errc::StaleGeneration,
      fmt::format("the broker has revision {} of the part of tenant {}, and not {}; it is "
                  "read again",
                  part->revision, tenant.id.value, limit.revision));
}

awaitable<Result<void>> TenantSteps::remove(HostTenant& tenant) {
  const wire::TenantRemove message{
      .tenant = tenant.id, .revoke = true, .request_id = {mint_request_id()}};
  const auto reply = co_await broker_.call(message);
  if (!reply && reply.error().code != Errc::UnknownTenant) co_return std::unexpected(reply.error());
  tenant.is_at_broker = false;
  tenant.keys.clear();
  co_return Result<void>();
}

// ---------------------------------------------------------------- keys

/// The keys are read after the policy that the next write compares.
awaitable<Result<void>> TenantSteps::check_keys(HostTenant& tenant) {
  if (tenant.keys.empty()) co_return Result<void>();
  std::vector<ApiKeyId> known;
  etcd::Transaction read;
  for (const auto& [id, key] : tenant.keys) {
    known.push_back(id);
    read.success.emplace_back(etcd::Get{etcd::KeyRange::one(keys_.key(id))});
  }
  const auto reply = co_await etcd_.commit(std::move(read));
  if (!reply) co_return std::unexpected(reply.error());
  for (std::size_t i = 0; i < known.size(); ++i) {
    const auto checked = co_await check_key(tenant, known[i], reply->found[i]);
    if (!checked) co_return checked;
  }
  co_return Result<void>();
}

/// A record that cannot be read gives no right to its holder, as if it were deleted.
awaitable<Result<void>> TenantSteps::check_key(HostTenant& tenant, const ApiKeyId& id,
                                               const std::vector<etcd::KeyValue>& found) {
  if (found.empty()) co_return co_await revoke_key(tenant, id);
  const auto record = read_key(found.front().key, found.front().value);
  if (!record || record->tenant != tenant.id) co_return co_await revoke_key(tenant, id);
  HostKey& key = tenant.keys.at(id);
  key.record = *record;
  const etcd::Revision modified = found.front().modified;
  if (key.modified == modified) co_return Result<void>();
  key.modified = {};
  const auto updated = co_await update_key(tenant, id);
  if (!updated) co_return updated;
  if (const auto kept = tenant.keys.find(id); kept != tenant.keys.end())
    kept->second.modified = modified;
  co_return Result<void>();
}

/// The broker refuses a key that has expired by its clock, which then is of no use there.
awaitable<Result<void>> TenantSteps::update_key(HostTenant& tenant, const ApiKeyId& id) {
  const CellKey record = *tenant.keys.at(id).record;
  const wire::KeyLimits limits =
      limits_on_host(record.limits, tenant.part.limit().share, tenant.part.limits());
  wire::KeyUpdate update = update_of(record, limits);
  update.request_id = {mint_request_id()};
  const auto reply = co_await broker_.call(update);
  if (!reply && reply.error().code == Errc::BadRequest) co_return co_await revoke_key(tenant, id);
  if (!reply) co_return std::unexpected(reply.error());
  tenant.keys.at(id).limits = limits;
  co_return Result<void>();
}

awaitable<Result<void>> TenantSteps::revoke_key(HostTenant& tenant, const ApiKeyId& id) {
  const wire::KeyRevoke revoke{.key = id, .request_id = {mint_request_id()}};
  const auto revoked = co_await broker_.call(revoke);
  if (!revoked && revoked.error().code != Errc::BadRequest)  // BadRequest: it has no such key
    co_return std::unexpected(revoked.error());
  tenant.keys.erase(id);
  co_return Result<void>();
}

/// After a change of the part the keys' limits on this host are others.
awaitable<Result<void>> TenantSteps::divide_key_limits(HostTenant& tenant) {
  if (!can_run(tenant.part.limit().share)) co_return Result<void>();
  std::vector<ApiKeyId> changed;
  for (const auto& [id, key] : tenant.keys) {
    if (key.modified.value == 0) continue;  // the next check gives the broker all of it
    const auto& whole = key.record->limits;
    if (limits_on_host(whole, tenant.part.limit().share, tenant.part.limits()) != key.limits)
      changed.push_back(id);
  }
  for (const ApiKeyId& id : changed) {
    const auto updated = co_await update_key(tenant, id);
    if (!updated) co_return updated;
  }
  co_return Result<void>();
}

/// The key is read again under the part that this host has now: a revocation that comes later mails
/// this host.
awaitable<Result<void>> TenantSteps::add_key(HostTenant& tenant, const std::string& hash) {
  const ApiKeyId id = api_key_id(hash);
  const std::string name = keys_.key(id);
  etcd::KeyRange range = etcd::KeyRange::one(name);
  const auto found = co_await etcd_.range(std::move(range));
  if (!found) co_return std::unexpected(found.error());
  const auto record = found->entries.empty()
                          ? Result<CellKey>(fail(Errc::BadToken, "the key was revoked"))
                          : read_key(name, found->entries.front().value);
  if (!record) co_return std::unexpected(record.error());
  const auto valid = check_expiry(*record, unix_time_ms());
  if (!valid) co_return valid;
  HostKey key{
      .modified = found->entries.front().modified,
      .record = *record,
      .limits = limits_on_host(record->limits, tenant.part.limit().share, tenant.part.limits())};
  wire::KeyCreate create = creation_of(*record, key.limits);
  create.request_id = {mint_request_id()};
  tenant.keys[id] =
      HostKey{.modified = {}, .record = *record, .limits = {}};  // if the reply is lost
  const auto created = co_await broker_.call(create);
  if (created) {
    tenant.keys[id] = std::move(key);
    co_return Result<void>();
  }
  const Errc code = created.error().code;
  if (!may_have_key(code)) tenant.keys.erase(id);
  // BadRequest: it has the key already, maybe with other limits.
  if (code == Errc::BadRequest) co_return co_await update_key(tenant, id);
  co_return std::unexpected(created.error());
}

// ---------------------------------------------------------------- the part

awaitable<Result<void>> TenantSteps::call_etcd(HostTenant& tenant, etcd::Transaction call) {
  const bool is_write = !call.conditions.empty();
  if (is_write) {
    const auto checked = co_await check_keys(tenant);
    if (!checked) {
      tenant.part.failed();
      co_return checked;
    }
    fault_point(FaultSite::CellKeysChecked);
  }
  const auto reply = co_await etcd_.commit(std::move(call));
  if (!reply) {
    tenant.part.failed();
    co_return std::unexpected(reply.error());
  }
  if (is_write) fault_point(FaultSite::CellPartWritten);
  co_return tenant.part.replied(*reply);
}

awaitable<Result<void>> TenantSteps::run(HostTenant& tenant, const PartOwner& owner) {
  tenant.part.wants(tenant.demand.share());
  while (true) {
    const auto sent = co_await send_limit(tenant, owner);
    if (!sent) co_return sent;
    if (tenant.part.awaits_confirmation()) {
      tenant.confirmed.expires_after(kConfirmTime);
      (void)co_await tenant.confirmed.async_wait(http::kAwait);
    }
    auto call = tenant.part.next_call();
    if (!call) break;
    const auto done = co_await call_etcd(tenant, *std::move(call));
    if (!done) co_return done;
  }
  if (tenant.part.limits().is_zero() && !tenant.asked.empty()) {
    co_return fail(Errc::BadToken,
                   fmt::format("tenant {} was removed from the cell", tenant.id.value));
  }
  const auto divided = co_await divide_key_limits(tenant);
  if (!divided) co_return divided;
  // Without a part they wait: other hosts were mailed.
  while (!tenant.asked.empty() && can_run(tenant.part.limit().share)) {
    const std::string hash = tenant.asked.back()->hash;
    const Result<void> added = co_await add_key(tenant, hash);
    answer_asked(tenant, hash, added);
  }
  co_return Result<void>();
}

}  // namespace leasehold::cell
