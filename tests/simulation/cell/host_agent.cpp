#include "tests/simulation/cell/host_agent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/expects.hpp"

namespace leasehold::cell::simulation {
namespace {

using std::chrono::milliseconds;

constexpr Duration kMinRetry = milliseconds(200);
constexpr Duration kMaxRetry = milliseconds(1'000);

}  // namespace

HostAgent::HostAgent(Network& network, const Terms& terms, Machine& machine, BrokerProcess& broker)
    : network_(network),
      terms_(terms),
      machine_(machine),
      broker_(broker),
      membership_(std::in_place, terms.keys, HostName{machine.name}),
      tenants_(terms.tenants.size()),
      watch_(network, machine, terms.keys.mail_of({machine.name}),
             [this](bool is_listing, const auto& put, const auto& deleted) {
               if (is_listing) mailed_.clear();
               const HostName host{machine_.name};
               for (const std::string& key : deleted)
                 mailed_.erase(*terms_.keys.tenant_in_mail(host, key));
               if (is_listing) {
                 for (std::size_t i = 0; i < tenants_.size(); ++i) {
                   if (!tenants_[i]) continue;
                   tenants_[i]->part.look_again();
                   wake(i);
                 }
               }
               for (const etcd::KeyValue& mail : put)
                 look_at_mail(*terms_.keys.tenant_in_mail(host, mail.key), mail.value);
             }) {}

void HostAgent::start() {
  network_.at(network_.between(0, 500), &machine_, in_this_life([this] { beat(); }));
  network_.at(network_.between(0, 200), &machine_, in_this_life([this] { keep_connected(); }));
  watch_.start();
}

/// The new process knows the membership from its directory, and the parts from the broker. Without
/// the directory it joins when the name is free.
void HostAgent::restart(bool keeps_directory) {
  network_.trace(
      fmt::format("{} agent starts again, directory {}", machine_.name, keeps_directory));
  ++life_;
  lose_connection();
  membership_.emplace(terms_.keys, HostName{machine_.name});
  owner_.reset();
  for (auto& tenant : tenants_) tenant.reset();
  mailed_.clear();
  is_beating_ = has_taken_ceiling_ = false;
  unanswered_since_.reset();
  if (!keeps_directory) file_.reset();
  if (file_) membership_->resume(*file_);
  start();
  set_membership();
}

// ---------------------------------------------------------------- membership

void HostAgent::beat() {
  const Duration regular = terms_.config.ttl() / 3;
  const bool is_late = is_beating_ || !membership_->is_member();
  const Duration next = is_late ? std::clamp(regular / 4, kMinRetry, kMaxRetry) : regular;
  network_.at(next + network_.between(0, 50), &machine_, in_this_life([this] { beat(); }));
  if (is_beating_ || has_lost_broker()) return;
  is_beating_ = true;
  const Duration ttl = membership_->next_ttl(terms_.config.ttl(), now());
  const HostRecord record{.beat = membership_->next_beat({network_.random()()}),
                          .ttl_ms = std::chrono::ceil<milliseconds>(ttl).count()};
  etcd::Transaction call = membership_->next_call(record).value();
  if (network_.has(PlantedBug::BeatWithoutCompare) && membership_->is_member())
    call.conditions.clear();
  membership_->sent(record, now());
  file_ = membership_->saved();
  network_.call(
      machine_, std::move(call), in_this_life([this, record](const etcd::TransactionReply& reply) {
        is_beating_ = false;
        if (network_.has(PlantedBug::ValidityFromReply) && reply.succeeded)
          membership_->sent({.beat = {record.beat.value + 1}, .ttl_ms = record.ttl_ms}, now());
        const auto change = membership_->replied(reply);
        if (change == MembershipChange::Renewed)
          network_.count(reply.succeeded ? Counted::Renewals : Counted::OwnBeatsFound);
        beaten(change);
      }),
      in_this_life([this] { is_beating_ = false; }));
}

/// A host whose broker takes no ceiling runs nothing after the TTL. It then lets itself be expired.
bool HostAgent::has_lost_broker() {
  const bool is_lost = membership_->is_member() && unanswered_since_ &&
                       now() - *unanswered_since_ >= terms_.config.ttl();
  if (is_lost) set_membership();
  return is_lost;
}

void HostAgent::beaten(const Result<MembershipChange>& change) {
  expects(change.has_value(), "a modelled reply has its form");
  file_ = membership_->saved();
  if (*change == MembershipChange::Joined) {
    network_.count(Counted::Joins);
    network_.trace(
        fmt::format("{} joins as {}", machine_.name, membership_->owner()->incarnation.value));
  }
  if (*change == MembershipChange::Fenced) {
    network_.count(Counted::Fences);
    network_.trace(fmt::format("{} is fenced", machine_.name));
  }
  if (*change == MembershipChange::NameInUse) network_.count(Counted::NamesInUse);
  set_membership();
}

void HostAgent::set_membership() {
  const auto owner = membership_->owner();
  if (owner && !first_) first_ = owner->incarnation;
  send_ceiling();
  set_owner(owner);
}

/// Mails that came outside of a membership are looked at now.
void HostAgent::set_owner(std::optional<PartOwner> owner) {
  if (owner_ == owner) return;
  owner_ = std::move(owner);
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    if (!tenants_[i]) continue;
    tenants_[i]->part.fenced();
    tenants_[i]->is_resumed = false;
    tenants_[i]->changed.reset();
    wake(i);
  }
  if (!owner_) return;
  for (const TenantId& id : mailed_) (void)find_or_add(index_of(id));
}

// ---------------------------------------------------------------- the broker

/// An agent without a membership leaves the broker alone.
void HostAgent::keep_connected() {
  network_.at(network_.between(300, 500), &machine_, in_this_life([this] { keep_connected(); }));
  if (!owner_ || is_attached_ || !pending_.empty()) return;
  attach();
}

/// Each connection has an id of its own, for one agent.
void HostAgent::attach() {
  ask(
      [this](HostBroker& core, TimePoint now, OnAnswer done) {
        core.call(connection(), wire::CellAttach{.cell = terms_.cell}, now, std::move(done));
      },
      [this](const Result<Answer>& answer) {
        if (answer) attached();
      });
}

void HostAgent::attached() {
  is_attached_ = true;
  send_ceiling();
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    if (!tenants_[i]) continue;
    tenants_[i]->is_resumed = false;
    tenants_[i]->changed.reset();
    wake(i);
  }
  list_parts();
}

std::uint64_t HostAgent::broker_incarnation(const PartOwner& owner) const {
  const bool is_kept = network_.has(PlantedBug::LimitsKeptOverJoin);
  return static_cast<std::uint64_t>((is_kept ? *first_ : owner.incarnation).value);
}

void HostAgent::send_ceiling() {
  if (has_taken_ceiling_ && !unanswered_since_) unanswered_since_ = now();
  if (!is_attached_) return;
  const auto owner = membership_->owner();
  if (!owner && network_.has(PlantedBug::LimitsKeptOverJoin)) return;
  const wire::CellCeiling message{
      .incarnation = owner ? broker_incarnation(*owner) : 0,
      .ceiling_boottime_ns = owner ? membership_->ceiling().boottime_ns : 0};
  ask([this, message](HostBroker& core, TimePoint now,
                      OnAnswer done) { core.call(connection(), message, now, std::move(done)); },
      [this](const Result<Answer>& answer) {
        if (!answer) return;
        has_taken_ceiling_ = true;
        unanswered_since_.reset();
      });
}

void HostAgent::ask(std::function<void(HostBroker&, TimePoint, OnAnswer)> call, OnAnswer then) {
  const std::uint64_t number = ++calls_;
  pending_.emplace(number, std::move(then));
  const auto reply = [this, connection = connection_, number](const Result<Answer>& answer) {
    network_.at(from_broker_.delay(network_, 15), &machine_, [this, connection, number, answer] {
      if (connection != connection_) return;
      auto waiting = pending_.extract(number);
      if (!waiting.empty()) waiting.mapped()(answer);
    });
  };
  network_.at(to_broker_.delay(network_, 15), &broker_.machine,
              [this, connection = connection_, call = std::move(call), reply] {
                if (connection != connection_) return;
                call(*broker_.core, network_.clock_of(broker_.machine), reply);
              });
}

void HostAgent::ask_views(OnViews then) {
  const auto views = std::make_shared<std::vector<wire::TenantView>>();
  ask(
      [views](HostBroker& core, TimePoint now, const OnAnswer& done) {
        *views = tenant_views(core.state(), std::nullopt, 16, now);
        done(Answer{});
      },
      [views, then = std::move(then)](const Result<Answer>& answer) {
        if (!answer) return then(std::unexpected(answer.error()));
        then(*views);
      });
}

void HostAgent::lose_connection() {
  ++connection_;
  is_attached_ = false;
  for (auto& [number, then] : std::exchange(pending_, {}))
    then(fail(Errc::ConnectionLost, "the connection has ended"));
}

void HostAgent::broker_restarted() {
  network_.at(network_.between(0, 30), &machine_, in_this_life([this] { lose_connection(); }));
}

/// A notification of this connection is newer than the list, even if it came before it.
void HostAgent::list_parts() {
  ask_views(in_this_life([this](const Result<std::vector<wire::TenantView>>& views) {
    if (!views) return;
    for (const wire::TenantView& view : *views) {
      const auto& known = tenants_[index_of(view.policy.tenant)];
      const bool is_told = known && known->changed;
      if (!is_told && view.part) take(changed_in(view));
    }
  }));
}

void HostAgent::notify(ConnectionId to, const wire::CellPartChanged& changed) {
  if (to != connection()) return;
  network_.at(from_broker_.delay(network_, 15), &machine_, in_this_life([this, to, changed] {
                if (to == connection()) take(changed);
              }));
}

void HostAgent::take(const wire::CellPartChanged& changed) {
  const std::size_t tenant = index_of(changed.tenant);
  HostedTenant& hosted = *find_or_add(tenant);
  if (!owner_) return;
  const bool is_used = hosted.changed && hosted.changed->part.uses != changed.part.uses;
  hosted.changed = changed;
  if (is_used) hosted.demand.seen(1, now());
  hosted.demand.seen(changed.part.demand, now());
  confirm(hosted);
  wake(tenant);
}

void HostAgent::confirm(HostedTenant& hosted) {
  if (!hosted.changed || !owner_ || !hosted.is_resumed) return;
  const wire::CellPart& part = hosted.changed->part;
  const bool is_early = network_.has(PlantedBug::ReturnBeforeConfirm);
  if (part.incarnation != number_of(owner_->incarnation) || !(part.confirmed || is_early)) return;
  hosted.part.confirmed(part.revision,
                        is_early ? hosted.part.limit().share : may_run_in(*hosted.changed));
}

// ---------------------------------------------------------------- mail and keys

HostAgent::HostedTenant* HostAgent::find_or_add(std::size_t tenant) {
  if (!tenants_[tenant]) {
    tenants_[tenant] = std::make_unique<HostedTenant>(terms_.keys, terms_.tenants[tenant]);
    wake(tenant);
  }
  return tenants_[tenant].get();
}

std::size_t HostAgent::index_of(const TenantId& id) const {
  return static_cast<std::size_t>(std::ranges::find(terms_.tenants, id) - terms_.tenants.begin());
}

/// A tenant that the broker does not have may have workers that wait for its keys.
std::uint32_t HostAgent::requests_of(const HostedTenant& hosted) const {
  if (!hosted.is_at_broker) return static_cast<std::uint32_t>(hosted.asked.size());
  return hosted.changed ? hosted.changed->part.demand : 0;
}

void HostAgent::look_at_mail(const TenantId& id, std::string_view value) {
  mailed_.insert(id);
  if (!owner_) return;
  const std::size_t tenant = index_of(id);
  HostedTenant& hosted = *find_or_add(tenant);
  if (value == kWantedMail) {
    hosted.schedule.wanted(hosted.part, now());
    return plan_step(tenant);
  }
  hosted.part.look_again();
  wake(tenant);
}

void HostAgent::resolve(std::size_t tenant, const std::optional<HostName>& moved_from,
                        HostWorker::OnResolved done) {
  network_.at(network_.between(0, 10), &machine_,
              in_this_life([this, tenant, moved_from, done = std::move(done)] {
                if (!owner_ || !is_attached_) return done(TextEnd::Refused);
                HostedTenant* const hosted = find_or_add(tenant);
                hosted->demand.seen(1, now());
                if (!can_run(hosted->part.limit().share)) hosted->part.look_again();
                if (moved_from && terms_.config.moves == MovePolicy::Overlap)
                  hosted->part.replaces(*moved_from);
                hosted->asked.push_back(done);
                wake(tenant);
              }));
}

void HostAgent::wants_more(std::size_t tenant, const std::optional<HostName>& moved_from) {
  network_.at(network_.between(0, 10), &machine_, in_this_life([this, tenant, moved_from] {
                if (!tenants_[tenant]) return;
                HostedTenant& hosted = *tenants_[tenant];
                const bool has_moved = moved_from && terms_.config.moves == MovePolicy::Overlap;
                if (has_moved) hosted.part.replaces(*moved_from);
                if (!hosted.schedule.wants_more(has_moved, now())) {
                  network_.count(Counted::PausedWants);
                  return plan_step(tenant);
                }
                hosted.demand.seen(1 + requests_of(hosted), now());
                hosted.part.look_again();
                wake(tenant);
              }));
}

void HostAgent::answer(HostedTenant& hosted, std::optional<TextEnd> refused) {
  for (const auto& done : std::exchange(hosted.asked, {})) done(refused);
}

}  // namespace leasehold::cell::simulation
