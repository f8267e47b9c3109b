#include "tools/cell/host_tenants.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "common/random.hpp"
#include "common/unix_time.hpp"
#include "ipc/control/tokens/api_key.hpp"
#include "ipc/http/http_await.hpp"
#include "tools/cell/decide/broker_part.hpp"
#include "tools/cell/decide/host_key.hpp"
#include "tools/cell/rethrow.hpp"

namespace leasehold::cell {
namespace {

using boost::asio::awaitable;

/// Wakes the workers that wait, with an error for those whose key was not looked at.
void refuse_asked(HostTenant& tenant, const Error& error) {
  for (const auto& asked : std::exchange(tenant.asked, {})) {
    asked->result = std::unexpected(error);
    asked->ready.cancel();
  }
}

/// A tenant that the broker does not have may have workers that wait for its keys.
std::uint32_t requests_of(const HostTenant& tenant) {
  if (!tenant.is_at_broker) return static_cast<std::uint32_t>(tenant.asked.size());
  return tenant.changed ? tenant.changed->part.demand : 0;
}

Error no_member() {
  return {Errc::CellLost,
          "this host is not a member of its cell, or has lost its broker; try again in a moment"};
}

}  // namespace

HostTenants::HostTenants(boost::asio::io_context& io, const Clock& clock, etcd::Client& etcd,
                         BrokerLink& broker, CellName cell)
    : io_(io),
      clock_(clock),
      etcd_(etcd),
      broker_(broker),
      cell_(std::move(cell)),
      keys_(cell_),
      steps_(etcd_, broker_, cell_),
      lookups_(io),
      time_{.ceiling = {}, .due = {}, .timer = boost::asio::steady_timer(io), .wakes = {}} {}

void HostTenants::start(const HostName& host) {
  host_ = host;
  boost::asio::co_spawn(io_, follow_mail(), kRethrow);
  boost::asio::co_spawn(io_, follow_due(), kRethrow);
}

/// Mails that came outside of a membership are looked at now.
void HostTenants::set_owner(std::optional<PartOwner> owner, TimePoint ceiling) {
  const TimePoint now = clock_.now();
  if (now >= time_.ceiling)
    for (const auto& [id, tenant] : tenants_) tenant->demand.hold(now);
  time_.ceiling = ceiling;
  if (owner_ == owner) return;
  owner_ = std::move(owner);
  for (const auto& [id, tenant] : tenants_) tenant->part.fenced();
  broker_attached();
  if (owner_)
    for (const TenantId& tenant : mailed_) (void)find_or_add(tenant);
}

void HostTenants::broker_attached() {
  ++attachment_.number;
  attachment_.is_list_due = true;
  for (const auto& [id, tenant] : tenants_) {
    tenant->is_resumed = false;
    tenant->changed.reset();
    wake(*tenant);
  }
}

HostTenant* HostTenants::find_or_add(const TenantId& id) {
  const auto found = tenants_.find(id);
  if (found != tenants_.end()) return found->second.get();
  if (tenants_.size() >= kMaxTenants) return nullptr;
  HostTenant* const tenant =
      tenants_.emplace(id, std::make_unique<HostTenant>(io_, keys_, id)).first->second.get();
  wake(*tenant);
  return tenant;
}

// ---------------------------------------------------------------- steps

void HostTenants::wake(HostTenant& tenant) {
  tenant.is_due_again = true;
  if (std::exchange(tenant.is_busy, true)) return;
  // Not at once: the caller may go through all tenants, and a step may forget one.
  boost::asio::post(io_, [this, &tenant] { boost::asio::co_spawn(io_, drive(tenant), kRethrow); });
}

awaitable<void> HostTenants::drive(HostTenant& tenant) {
  bool has_failed = false;
  while (!has_failed && std::exchange(tenant.is_due_again, false)) {
    if (!owner_ || !broker_.is_connected()) {
      refuse_asked(tenant, no_member());
      break;
    }
    const auto done = co_await step(tenant, *owner_);
    has_failed = !done;
    if (done) continue;
    refuse_asked(tenant, done.error());
    if (done.error().code != Errc::BadToken) report(tenant, done.error());
  }
  ended(tenant, has_failed || !tenant.is_resumed);
}

/// Forgets the tenant when its part is returned.
void HostTenants::ended(HostTenant& tenant, bool has_failed) {
  tenant.is_busy = false;
  const bool is_known = tenant.is_resumed && !tenant.is_at_broker;
  if (is_known && tenant.part.is_returned() && tenant.asked.empty()) {
    const TenantId id = tenant.id;
    time_.due.set(id, std::nullopt);
    tenants_.erase(id);
    return;
  }
  const TimePoint now = clock_.now();
  tenant.demand.seen(requests_of(tenant), now);
  tenant.schedule.stepped(tenant.part, has_failed, now, random_bits());
  plan_step(tenant);
}

awaitable<Result<void>> HostTenants::step(HostTenant& tenant, PartOwner owner) {
  if (!tenant.is_resumed) {
    const std::uint64_t number = attachment_.number;
    const auto resumed = co_await steps_.resume(tenant, owner);
    if (number != attachment_.number)
      tenant.is_resumed = false;  // what the broker said is of an earlier one
    if (!resumed || !tenant.is_resumed) co_return resumed;
    confirm(tenant);  // what came while this call was on its way
  }
  const auto done = co_await steps_.run(tenant, owner);
  if (!done) co_return done;
  last_error_.reset();
  const bool is_unused = tenant.part.is_returned() && tenant.asked.empty();
  if (is_unused && tenant.is_at_broker && !tenant.is_due_again)
    co_return co_await steps_.remove(tenant);
  co_return done;
}

/// Once for each error, not for each attempt.
void HostTenants::report(const HostTenant& tenant, const Error& error) {
  if (std::exchange(last_error_, error.code) == error.code) return;
  spdlog::warn("part not changed tenant={} code={} reason=\"{}\"", tenant.id.value,
               name(error.code), error.detail);
}

// ---------------------------------------------------------------- keys

/// Waits for its turn, so that steps of tenants find room in etcd's client however many keys
/// clients make up.
awaitable<Result<etcd::RangeReply>> HostTenants::look_up(const std::string& key) {
  while (lookups_.running >= kMaxLookups) (void)co_await lookups_.ended.async_wait(http::kAwait);
  ++lookups_.running;
  etcd::KeyRange range = etcd::KeyRange::one(key);
  auto found = co_await etcd_.range(std::move(range));
  --lookups_.running;
  lookups_.ended.cancel_one();
  co_return found;
}

awaitable<Result<void>> HostTenants::resolve(wire::KeyResolve wanted) {
  if (!owner_ || !broker_.is_connected()) co_return std::unexpected(no_member());
  const std::string key = keys_.key(api_key_id(wanted.hash));
  const auto found = co_await look_up(key);
  if (!found) co_return std::unexpected(found.error());
  const Error unknown{Errc::BadToken,
                      "the cell does not have this key; create one with "
                      "`brokerctl cell keys create`"};
  if (found->entries.empty()) co_return std::unexpected(unknown);
  const auto record = read_key(key, found->entries.front().value);
  if (!record) co_return std::unexpected(record.error());
  if (record->hash != wanted.hash) co_return std::unexpected(unknown);
  const auto valid = check_expiry(*record, unix_time_ms());
  if (!valid) co_return valid;  // before this host takes a part for it
  HostTenant* const tenant = find_or_add(record->tenant);
  if (tenant == nullptr)
    co_return fail(Errc::QueueFull, fmt::format("this host serves {} tenants, which is the most; "
                                                "use another host",
                                                kMaxTenants));
  tenant->demand.seen(1, clock_.now());
  if (!can_run(tenant->part.limit().share)) tenant->part.look_again();
  if (wanted.moved_from) tenant->part.replaces(*wanted.moved_from);
  const auto asked = std::make_shared<AskedKey>(io_, std::move(wanted.hash));
  asked->ready.expires_after(kKeyTimeout);
  tenant->asked.push_back(asked);
  wake(*tenant);
  (void)co_await asked->ready.async_wait(http::kAwait);
  if (asked->result) co_return *asked->result;
  std::erase(tenant->asked, asked);  // a tenant with a waiting worker is not forgotten
  co_return fail(
      Errc::QuotaConcurrent,
      fmt::format("this host got no part of the limits of tenant {} in time, because other "
                  "hosts use them or etcd is slow; try again",
                  record->tenant.value));
}

/// One request more than the broker knows of: the refused or moved one.
void HostTenants::wants_more(const wire::PartWant& wanted) {
  const auto found = tenants_.find(wanted.tenant);
  if (found == tenants_.end()) return;
  HostTenant& tenant = *found->second;
  const TimePoint now = clock_.now();
  if (wanted.moved_from) tenant.part.replaces(*wanted.moved_from);
  if (!tenant.schedule.wants_more(wanted.moved_from.has_value(), now)) return plan_step(tenant);
  tenant.demand.seen(1 + requests_of(tenant), now);
  tenant.part.look_again();
  wake(tenant);
}

// ---------------------------------------------------------------- mail

void HostTenants::look_at_mail(const etcd::KeyValue& mail) {
  const auto tenant = keys_.tenant_in_mail(host_, mail.key);
  if (!tenant) return;
  mailed_.insert(*tenant);
  if (!owner_) return;
  HostTenant* const known = find_or_add(*tenant);
  if (known == nullptr) return;
  if (mail.value == kWantedMail) {
    known->schedule.wanted(known->part, clock_.now());
    return plan_step(*known);
  }
  known->part.look_again();
  wake(*known);
}

/// Another host may have deleted a mail that this one has not seen, so all tenants are looked at.
void HostTenants::on_listing(std::vector<etcd::KeyValue> entries, etcd::Revision) {
  mailed_.clear();
  for (const auto& [id, tenant] : tenants_) {
    tenant->part.look_again();
    wake(*tenant);
  }
  for (const etcd::KeyValue& entry : entries) look_at_mail(entry);
}

void HostTenants::on_events(std::vector<etcd::WatchEvent> events) {
  for (const etcd::WatchEvent& event : events) {
    if (!event.is_deleted) {
      look_at_mail(event.entry);
    } else if (const auto tenant = keys_.tenant_in_mail(host_, event.entry.key)) {
      mailed_.erase(*tenant);
    }
  }
}

void HostTenants::on_interrupted(const Error& error) {
  spdlog::debug("watch of the mail begins again reason=\"{}\"", error.detail);
}

/// A watch that etcd refuses is tried again: an operator may correct the role.
awaitable<void> HostTenants::follow_mail() {
  boost::asio::steady_timer pause(io_);
  while (true) {
    etcd::KeyRange range = keys_.mail_of(host_);
    const auto ended = co_await etcd_.watch(std::move(range), *this);
    if (!ended)
      spdlog::warn("mail not read code={} reason=\"{}\"", name(ended.error().code),
                   ended.error().detail);
    pause.expires_after(kWatchAgain);
    (void)co_await pause.async_wait(http::kAwait);
  }
}

// ---------------------------------------------------------------- the broker

void HostTenants::notified(const std::string& method, const wire::Json& params) {
  if (method != wire::CellPartChanged::kMethod) return;
  auto changed = wire::CellPartChanged::from_json(params);
  if (changed) return take(*std::move(changed));
  spdlog::warn("notification of the broker not read code={} reason=\"{}\"",
               name(changed.error().code), changed.error().detail);
}

void HostTenants::take(wire::CellPartChanged changed) {
  HostTenant* const tenant = find_or_add(changed.tenant);
  if (tenant == nullptr || !owner_) return;
  const bool is_used = tenant->changed && tenant->changed->part.uses != changed.part.uses;
  tenant->changed = std::move(changed);
  const TimePoint now = clock_.now();
  if (is_used) tenant->demand.seen(1, now);
  tenant->demand.seen(tenant->changed->part.demand, now);
  confirm(*tenant);
  wake(*tenant);
}

void HostTenants::confirm(HostTenant& tenant) {
  if (!tenant.changed || !owner_ || !tenant.is_resumed) return;
  const wire::CellPart& part = tenant.changed->part;
  if (part.confirmed && part.incarnation == number_of(owner_->incarnation))
    tenant.part.confirmed(part.revision, may_run_in(*tenant.changed));
  if (!tenant.part.awaits_confirmation()) tenant.confirmed.cancel();
}

/// A notification of this connection is newer than the list, even if it came before it.
awaitable<void> HostTenants::list_parts() {
  const std::uint64_t number = attachment_.number;
  const auto views = co_await broker_.list<wire::TenantView>();
  if (!views || number != attachment_.number) co_return;  // the list remains due
  attachment_.is_list_due = false;
  for (const wire::TenantView& view : *views) {
    const auto known = tenants_.find(view.policy.tenant);
    const bool is_told = known != tenants_.end() && known->second->changed;
    if (!is_told && view.policy.cell == cell_ && view.part) take(changed_in(view));
  }
}

// ---------------------------------------------------------------- time

void HostTenants::plan_step(HostTenant& tenant) {
  const auto due = tenant.schedule.due_at(tenant.demand);
  time_.due.set(tenant.id, due);
  if (due && *due < time_.wakes) time_.timer.cancel();
}

void HostTenants::begin_step(HostTenant& tenant) {
  const TimePoint now = clock_.now();
  if (now >= time_.ceiling) tenant.demand.hold(now);
  tenant.demand.seen(requests_of(tenant), now);
  if (tenant.schedule.begin_step(now)) tenant.part.look_again();
  wake(tenant);
}

Duration HostTenants::time_to_step() const {
  const auto next = time_.due.next();
  const bool is_waiting = !owner_ || !broker_.is_connected() || attachment_.is_list_due || !next;
  if (is_waiting) return kTick;
  return std::clamp<Duration>(*next - clock_.now(), Duration::zero(), kTick);
}

awaitable<void> HostTenants::follow_due() {
  while (true) {
    const Duration time = time_to_step();
    time_.wakes = clock_.now() + time;
    time_.timer.expires_after(time);
    (void)co_await time_.timer.async_wait(http::kAwait);
    if (!owner_ || !broker_.is_connected()) continue;
    if (attachment_.is_list_due) co_await list_parts();
    for (const TenantId& id : time_.due.take(clock_.now()))
      if (const auto found = tenants_.find(id); found != tenants_.end()) begin_step(*found->second);
  }
}

}  // namespace leasehold::cell
