#include "tests/simulation/cell/model_host.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/expects.hpp"

namespace leasehold::cell::simulation {
namespace {

using std::chrono::milliseconds;

/// Conditions that a planted bug leaves out.
void drop_conditions(etcd::Transaction& call, auto is_dropped) {
  std::erase_if(call.conditions, is_dropped);
}

}  // namespace

ModelHost::ModelHost(Network& network, const Terms& terms, Machine machine)
    : network_(network),
      terms_(terms),
      machine_(std::move(machine)),
      agent_(machine_),
      membership_(std::in_place, terms.keys, HostName{machine_.name}),
      part_(terms.keys, terms.tenant) {}

Share ModelHost::may_run() const {
  if (network_.clock_of(machine_) >= deadline_) return {};
  return greater(broker_limit_.share, running_);
}

Duration ModelHost::scaled(std::int64_t least_ms, std::int64_t most_ms) {
  return network_.between(least_ms, most_ms) *
         std::max<std::int64_t>(1, terms_.config.ttl_ms / 6'000);
}

void ModelHost::start() {
  network_.at(network_.between(0, 500), &agent_, [this] { beat(); });
  network_.at(network_.between(0, 500), &agent_, [this] { work(); });
  network_.at(network_.between(0, 500), &machine_, [this] { renew(); });
  network_.at(network_.between(0, 500), &machine_, [this] { serve(); });
}

// ---------------------------------------------------------------- the agent's membership

void ModelHost::beat() {
  const Duration pause = terms_.config.ttl() / 3;
  network_.at(membership_->is_member() ? pause + network_.between(0, 50) : milliseconds(700),
              &agent_, [this] { beat(); });
  if (is_beating_) return;
  is_beating_ = true;
  const HostRecord record{.beat = {network_.random()()}, .ttl_ms = terms_.config.ttl_ms};
  etcd::Transaction call = membership_->next_call(record).value();
  if (network_.has(PlantedBug::BeatWithoutCompare) && membership_->is_member())
    drop_conditions(call, [](const auto&) { return true; });
  membership_->sent(record, network_.clock_of(machine_));
  file_ = membership_->saved();
  const auto again = [this, process = process_](auto finish) {
    if (process != process_) return;  // of a process that was killed
    is_beating_ = false;
    finish();
  };
  network_.call(
      agent_, std::move(call),
      [this, again, record](const etcd::TransactionReply& reply) {
        again([&] {
          if (network_.has(PlantedBug::ValidityFromReply) && reply.succeeded)
            membership_->sent(record, network_.clock_of(machine_));
          beaten(membership_->replied(reply), !reply.succeeded);
        });
      },
      [again] { again([] {}); });
}

void ModelHost::beaten(const Result<MembershipChange>& change, bool was_refused) {
  expects(change.has_value(), "a modelled reply has its form");
  switch (*change) {
    case MembershipChange::NameInUse:
      return;
    case MembershipChange::Joined:
      network_.count(Counted::Joins);
      network_.trace(
          fmt::format("{} joins as {}", machine_.name, membership_->owner()->incarnation.value));
      part_.joined(*membership_->owner());
      if (!network_.has(PlantedBug::LimitsKeptOverJoin)) push_limit();
      break;
    case MembershipChange::Renewed:
      network_.count(was_refused ? Counted::OwnBeatsFound : Counted::Renewals);
      break;
    case MembershipChange::Fenced:
      network_.count(Counted::Fences);
      network_.trace(fmt::format("{} is fenced", machine_.name));
      part_.fenced();
      if (network_.has(PlantedBug::LimitsKeptOverJoin)) return;
      push_limit();
      tell_broker([this] { end_leases(); });
      return;
  }
  push_ceiling();
}

/// The new process knows the membership from its directory, and the limits from the broker. Without
/// the directory it revokes the leases and joins when the name is free.
void ModelHost::restart_agent(bool keeps_directory) {
  ++process_;
  is_beating_ = is_calling_ = false;
  network_.trace(
      fmt::format("{} agent starts again, directory {}", machine_.name, keeps_directory));
  membership_.emplace(terms_.keys, name());
  part_ = TenantPart(terms_.keys, terms_.tenant);
  part_.wants(demand_);
  if (!keeps_directory) file_.reset();
  if (file_) {
    membership_->resume(*file_);
    pushed_ = broker_limit_.revision;
    part_.resumed(*membership_->owner(), broker_limit_, may_run_at_broker());
    return;
  }
  pushed_ = 0;
  broker_limit_ = {};
  end_leases();
}

// ---------------------------------------------------------------- the agent's part

void ModelHost::work() {
  network_.at(scaled(20, 200), &agent_, [this] { work(); });
  if (part_.is_short() && network_.one_in(8)) part_.look_again();
  watch_mail();
  if (is_calling_ || !membership_->is_member()) return;
  auto call = part_.next_call();
  push_limit();
  if (!call) return;
  is_calling_ = true;
  const bool is_write = !call->conditions.empty();
  if (is_write && network_.has(PlantedBug::VoidWithoutIncarnation))
    drop_conditions(*call, [](const auto& each) { return !each.is_equal; });
  if (is_write)
    for (const auto& each : call->conditions)
      if (!each.is_equal) network_.count(Counted::VoidParts);
  const auto again = [this, process = process_](auto finish) {
    if (process != process_) return;
    is_calling_ = false;
    finish();
    push_limit();
  };
  if (is_write && network_.has(PlantedBug::BrokerBeforeLedger))
    tell_broker([this] { broker_limit_.share = greater(broker_limit_.share, demand_); });
  network_.call(
      agent_, std::move(*call),
      [this, again](const etcd::TransactionReply& reply) {
        etcd::TransactionReply seen = reply;
        // A planted reader takes a stale read for the truth.
        if (network_.has(PlantedBug::VoidWithoutIncarnation) && network_.one_in(4))
          for (auto& entries : seen.found)
            if (!entries.empty() && terms_.keys.host_in(entries.front().key)) entries.clear();
        again([&] { (void)part_.replied(seen); });
      },
      [this, again] { again([this] { part_.failed(); }); });
}

/// A watch shows a mail late, and while the host is cut off not at all. After a gap it lists what
/// is there, so a mail is seen until it is deleted.
void ModelHost::watch_mail() {
  if (agent_.is_cut || !network_.one_in(3)) return;
  if (network_.etcd().read(terms_.keys.mail_of(name())).empty()) return;
  network_.count(Counted::Mails);
  part_.look_again();
}

/// Messages of the agent arrive at the broker in their order.
void ModelHost::tell_broker(std::function<void()> message) {
  broker_hears_ = std::max(broker_hears_, network_.now() + network_.between(0, 20));
  network_.at(broker_hears_ - network_.now(), &machine_, std::move(message));
}

void ModelHost::push_limit() {
  const BrokerLimit limit = part_.limit();
  if (pushed_ == limit.revision) return;
  pushed_ = limit.revision;
  const std::optional<PartOwner> owner = membership_->owner();
  tell_broker([this, limit, owner, process = process_] {
    if (process != process_) return;
    network_.count(limit.share.fits(broker_limit_.share) ? Counted::Lowerings : Counted::Raises);
    broker_limit_ = limit;
    served_as_ = owner;
    if (network_.has(PlantedBug::ReturnBeforeConfirm)) part_.confirmed(limit.revision, limit.share);
  });
}

void ModelHost::push_ceiling() {
  tell_broker([this, ceiling = membership_->ceiling()] { broker_ceiling_ = ceiling; });
}

// ---------------------------------------------------------------- the broker and its workers

Share ModelHost::may_run_at_broker() const {
  return greater(broker_limit_.share, running_);
}

void ModelHost::end_leases() {
  broker_limit_.share = running_ = {};
  deadline_ = {};
  served_as_.reset();
}

void ModelHost::renew() {
  network_.at(scaled(200, 1'000), &machine_, [this] { renew(); });
  const TimePoint now = network_.clock_of(machine_);
  const Duration lease_ttl = terms_.config.ttl() / 2;
  const bool is_bound = !network_.has(PlantedBug::RenewalPastCeiling);
  deadline_ = is_bound ? std::min(now + lease_ttl, broker_ceiling_) : now + lease_ttl;
}

/// Requests begin and end; the broker reports what can still run.
void ModelHost::serve() {
  network_.at(scaled(50, 400), &machine_, [this] { serve(); });
  if (network_.clock_of(machine_) >= deadline_) running_ = {};
  if (network_.one_in(2))
    running_ = greater(running_, broker_limit_.share);
  else if (network_.one_in(2) || is_settling_)
    running_ = smaller(running_, broker_limit_.share);
  // Asked again while a limit waits: the report may be older than the limit.
  const Share can_run = may_run_at_broker();
  network_.at(network_.between(0, 100), &agent_,
              [this, revision = broker_limit_.revision, can_run, process = process_] {
                if (process == process_) part_.confirmed(revision, can_run);
              });
  if (is_settling_ || !network_.one_in(12)) return;
  // Often a demand returns to what it was.
  const auto most = std::uint64_t{terms_.limits.concurrent} + 2;
  const std::uint64_t some = network_.one_in(2) ? most - 1 : network_.random().below(most);
  const auto wanted = static_cast<std::uint32_t>(network_.one_in(3) ? 0 : some);
  demand_ = {.concurrent = wanted, .blocks = wanted * 10};
  network_.at(network_.between(0, 50), &agent_, [this, demand = demand_, process = process_] {
    if (process == process_) part_.wants(demand);
  });
}

}  // namespace leasehold::cell::simulation
