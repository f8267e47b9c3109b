#include "tools/cell/tenant_steps.hpp"

#include <fmt/format.h>

#include <utility>

#include "common/fault_point.hpp"
#include "common/random.hpp"
#include "ipc/control/messages.hpp"
#include "ipc/control/tokens/api_key.hpp"
#include "ipc/http/http_await.hpp"
#include "tools/cell/decide/broker_part.hpp"

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
    for (const wire::KeyView& key : *keys) tenant.keys.insert(key.key);
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
awaitable<Result<void>> TenantSteps::drop_revoked_keys(HostTenant& tenant) {
  if (tenant.keys.empty()) co_return Result<void>();
  etcd::Transaction read;
  for (const ApiKeyId& key : tenant.keys)
    read.success.emplace_back(etcd::Get{etcd::KeyRange::one(keys_.key(key))});
  const auto reply = co_await etcd_.commit(std::move(read));
  if (!reply) co_return std::unexpected(reply.error());
  const std::vector<ApiKeyId> known(tenant.keys.begin(), tenant.keys.end());
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (!reply->found[i].empty()) continue;
    const wire::KeyRevoke revoke{.key = known[i], .request_id = {mint_request_id()}};
    const auto revoked = co_await broker_.call(revoke);
    if (!revoked && revoked.error().code != Errc::BadRequest)  // BadRequest: it has no such key
      co_return std::unexpected(revoked.error());
    tenant.keys.erase(known[i]);
  }
  co_return Result<void>();
}

/// The key is read again under the part that this host has now: a revocation that comes later mails
/// this host.
awaitable<Result<void>> TenantSteps::add_key(HostTenant& tenant, const std::string& hash) {
  const ApiKeyId id = api_key_id(hash);
  const std::string key = keys_.key(id);
  etcd::KeyRange range = etcd::KeyRange::one(key);
  const auto found = co_await etcd_.range(std::move(range));
  if (!found) co_return std::unexpected(found.error());
  const auto record = found->entries.empty()
                          ? Result<CellKey>(fail(Errc::BadToken, "the key was revoked"))
                          : read_key(key, found->entries.front().value);
  if (!record) co_return std::unexpected(record.error());
  wire::KeyCreate create;
  create.tenant = tenant.id;
  create.hash = record->hash;
  create.name = record->name;
  create.request_id = {mint_request_id()};
  tenant.keys.insert(id);  // also when the reply is lost
  const auto created = co_await broker_.call(create);
  if (created) co_return Result<void>();
  const Errc code = created.error().code;
  if (!may_have_key(code)) tenant.keys.erase(id);
  if (code == Errc::BadRequest) co_return Result<void>();  // it has the key already
  co_return std::unexpected(created.error());
}

// ---------------------------------------------------------------- the part

awaitable<Result<void>> TenantSteps::call_etcd(HostTenant& tenant, etcd::Transaction call) {
  const bool is_write = !call.conditions.empty();
  if (is_write) {
    const auto dropped = co_await drop_revoked_keys(tenant);
    if (!dropped) {
      tenant.part.failed();
      co_return dropped;
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
  // Without a part they wait: other hosts were mailed.
  while (!tenant.asked.empty() && can_run(tenant.part.limit().share)) {
    const std::string hash = tenant.asked.back()->hash;
    const Result<void> added = co_await add_key(tenant, hash);
    answer_asked(tenant, hash, added);
  }
  co_return Result<void>();
}

}  // namespace leasehold::cell
