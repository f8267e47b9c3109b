#include "tests/simulation/cell/world.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/cell/decide/tenant_change.hpp"

namespace leasehold::cell::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kHosts = 3;
constexpr int kObservers = 2;
constexpr double kRateDifference = 0.005;  // of two clocks at most
constexpr std::int64_t kShortTtlMs = 6'000;
constexpr std::int64_t kLongTtlMs = 600'000;

}  // namespace

Terms World::make_terms(PlantedBug bug, std::uint64_t seed) {
  Terms terms;
  terms.config = {.ttl_ms = bug == PlantedBug::FastClock ? kLongTtlMs : kShortTtlMs,
                  .slack_ms = bug == PlantedBug::FastClock ? 1'000 : 500};
  const auto limit = static_cast<std::uint32_t>(1 + random_at(seed, 99) % 9);
  terms.limits = {.concurrent = limit, .blocks = limit * 10};
  return terms;
}

Machine World::make_machine(std::string name, double rate) {
  return {.name = std::move(name),
          .offset_ns = static_cast<std::int64_t>(network_.random().below(1'000'000'000'000)),
          .rate = rate};
}

World::World(std::uint64_t seed, PlantedBug bug, Coverage& coverage)
    : terms_(make_terms(bug, seed)),
      network_(seed, bug, coverage),
      judge_(network_, terms_, hosts_),
      faulty_(terms_.config.ttl() * 12) {
  const auto rate = [&] {
    if (bug == PlantedBug::FastClock) return 1.0;
    return 1 + (random_unit_at(network_.random()(), 0) - 0.5) * kRateDifference;
  };
  for (int i = 0; i < kHosts; ++i)
    hosts_.push_back(
        std::make_unique<ModelHost>(network_, terms_, make_machine(fmt::format("h{}", i), rate())));
  for (int i = 0; i < kObservers; ++i) {
    const double observed = bug == PlantedBug::FastClock ? 1.02 : rate();
    observers_.push_back(
        std::make_unique<Observer>(Observer{make_machine(fmt::format("g{}", i), observed),
                                            SilentHosts(terms_.keys, terms_.config.slack())}));
  }
  operator_ = make_machine("operator", 1.0);
}

void World::run() {
  network_.etcd().execute({.conditions = {},
                           .success = {etcd::Put{terms_.keys.tenant(terms_.tenant),
                                                 text_of(CellPolicy{terms_.limits})}},
                           .failure = {}});
  network_.on_executed([this] { judge_.check_revision(); });
  for (auto& host : hosts_) host->start();
  for (auto& observer : observers_)
    network_.at(network_.between(0, 500), &observer->machine, [&] { observe(*observer); });
  network_.at(seconds(1), nullptr, [this] { fault(); });
  if (network_.one_in(3))
    network_.at(network_.between(0, faulty_ / milliseconds(1)), nullptr, [this] { revoke(); });
  network_.at(faulty_, nullptr, [this] { heal(); });
  const TimePoint end = network_.now() + faulty_ + terms_.config.ttl() * 8;
  while (network_.step(end)) judge_.check_running();
  judge_.check_end();
}

// ---------------------------------------------------------------- observers

void World::observe(Observer& observer) {
  network_.at(network_.between(400, 700), &observer.machine, [&] { observe(observer); });
  if (observer.is_asking) return;
  observer.is_asking = true;
  network_.call(
      observer.machine,
      {.conditions = {}, .success = {etcd::Get{terms_.keys.hosts()}}, .failure = {}},
      [&](const etcd::TransactionReply& reply) {
        observer.is_asking = false;
        const TimePoint now = network_.clock_of(observer.machine);
        observer.hosts.listed(reply.found.front(), now);
        for (Expiry& expiry : observer.hosts.expired(now)) expire(observer, std::move(expiry));
      },
      [&] { observer.is_asking = false; });
}

void World::expire(Observer& observer, Expiry expiry) {
  if (network_.has(PlantedBug::ExpiryWithoutCompare)) expiry.transaction.conditions.clear();
  network_.call(
      observer.machine, std::move(expiry.transaction),
      [this, host = expiry.host](const etcd::TransactionReply& reply) {
        if (!reply.succeeded) return;
        network_.count(Counted::Expiries);
        network_.trace(fmt::format("{} is expired", host.value));
      },
      [] {});
}

// ---------------------------------------------------------------- faults

void World::fault() {
  if (network_.is_calm) return;
  const std::int64_t scale = terms_.config.ttl_ms / kShortTtlMs;
  network_.at(network_.between(100, 3'000) * scale, nullptr, [this] { fault(); });
  ModelHost& host = *hosts_[network_.random().below(hosts_.size())];
  const TimePoint until = network_.now() + network_.between(200, 15'000) * scale;
  const auto kind = network_.random().below(10);
  if (kind < 3) {
    host.set_cut(true);
    network_.at(until - network_.now(), nullptr, [&host] { host.set_cut(false); });
  } else if (kind < 5) {
    host.stop(until);
  } else if (kind < 7) {
    host.stop_agent(until);
  } else if (kind < 8) {
    host.restart_agent(!network_.one_in(4));
  } else if (kind < 9) {
    Machine& machine = observers_[network_.random().below(observers_.size())]->machine;
    if (network_.one_in(2)) machine.stopped_until = std::max(machine.stopped_until, until);
    machine.is_cut = !machine.is_cut;
  } else if (network_.has(PlantedBug::EarlyDeletionTrusted)) {
    network_.etcd().execute(
        {.conditions = {},
         .success = {etcd::Delete{etcd::KeyRange::one(terms_.keys.host(host.name()))}},
         .failure = {}});
  }
}

/// What is stopped goes on when its stop ends.
void World::heal() {
  network_.is_calm = true;
  for (auto& host : hosts_) {
    host->set_cut(false);
    host->settle();
  }
  for (auto& observer : observers_) observer->machine.is_cut = false;
}

// ---------------------------------------------------------------- the operator

void World::read_tenant(std::function<void(const TenantView&)> use, std::function<void()> again) {
  const auto later = [this, again] { network_.at(milliseconds(300), &operator_, again); };
  network_.call(
      operator_, ledger_read(terms_.keys, terms_.tenant),
      [this, use, later](const etcd::TransactionReply& reply) {
        TenantView view = view_of(reply).value();
        network_.call(
            operator_, members_read(terms_.keys, view),
            [this, use, view](const etcd::TransactionReply& members) mutable {
              view.members = members_in(terms_.keys, members);
              use(view);
            },
            later);
      },
      later);
}

/// A change whose reply is lost is made again: it is written with the ledger and policy as they
/// are.
void World::revoke() {
  read_tenant(
      [this](const TenantView& view) {
        network_.call(
            operator_, change_of(terms_.keys, terms_.tenant, CellPolicy{}, view),
            [this](const etcd::TransactionReply& reply) {
              network_.trace(fmt::format("the operator revokes, {}", reply.succeeded));
              if (reply.succeeded) return wait_for(reply.revision);
              revoke();
            },
            [this] { revoke(); });
      },
      [this] { revoke(); });
}

void World::wait_for(etcd::Revision changed) {
  read_tenant(
      [this, changed](const TenantView& view) {
        if (!not_applied(view, changed).empty()) {
          network_.at(milliseconds(200), &operator_, [this, changed] { wait_for(changed); });
          return;
        }
        network_.count(Counted::Revocations);
        network_.trace("the revocation has ended");
        judge_.revocation_ended();
      },
      [this, changed] { wait_for(changed); });
}

}  // namespace leasehold::cell::simulation
