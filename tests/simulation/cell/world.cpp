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
constexpr std::uint32_t kTokensPerMinute = 60'000;

}  // namespace

Terms World::make_terms(PlantedBug bug, std::uint64_t seed) {
  Terms terms;
  terms.config = {.ttl_ms = bug == PlantedBug::FastClock ? kLongTtlMs : kShortTtlMs,
                  .slack_ms = bug == PlantedBug::FastClock ? 1'000 : 500,
                  .moves = random_at(seed, 97) % 3 == 0 ? MovePolicy::Strict : MovePolicy::Overlap};
  if (bug == PlantedBug::FastClock) terms.pace = 10;
  terms.tenants.emplace_back("ann");
  if (random_at(seed, 98) % 2 == 0) terms.tenants.emplace_back("bob");
  const auto limit = static_cast<std::uint32_t>(1 + random_at(seed, 99) % 4);
  terms.limits = {
      .concurrent = limit, .blocks = limit * kRequestBlocks, .tokens_per_minute = kTokensPerMinute};
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
      texts_(network_, terms_, hosts_, judge_),
      faulty_(terms_.config.ttl() * static_cast<int>(4 + random_at(seed, 96) % 5)) {
  const auto rate = [&] {
    if (bug == PlantedBug::FastClock) return 1.0;
    return 1 + (random_unit_at(network_.random()(), 0) - 0.5) * kRateDifference;
  };
  for (int i = 0; i < kHosts; ++i) add_host(fmt::format("h{}", i), rate());
  if (network_.one_in(8)) add_host("h0", rate());  // two machines with one name
  for (int i = 0; i < kObservers; ++i) {
    const double observed = bug == PlantedBug::FastClock ? 1.02 : rate();
    observers_.push_back(
        std::make_unique<Observer>(Observer{make_machine(fmt::format("g{}", i), observed),
                                            SilentHosts(terms_.keys, terms_.config.slack())}));
  }
  operator_ = make_machine("operator", 1.0);
}

void World::add_host(std::string name, double rate) {
  const std::size_t index = hosts_.size();
  news_.push_back(std::make_unique<Channel>());
  hosts_.push_back(std::make_unique<ModelHost>(
      network_, terms_, make_machine(std::move(name), rate),
      ModelHost::Links{
          .send_news =
              [this, index](std::vector<TextNews> news) {
                if (news.empty()) return;
                network_.at(news_[index]->delay(network_, 200), nullptr,
                            [this, index, news = std::move(news)] { texts_.heard(index, news); });
              },
          .committed = [this](std::size_t tenant,
                              const PartOwner& owner) { judge_.committed(tenant, owner); }}));
}

void World::etcd_executed() {
  judge_.check_revision();
  for (auto& host : hosts_) host->etcd_changed();
}

void World::run() {
  for (const TenantId& tenant : terms_.tenants)
    network_.etcd().execute(
        {.conditions = {},
         .success = {etcd::Put{terms_.keys.tenant(tenant), text_of(CellPolicy{terms_.limits})}},
         .failure = {}});
  network_.on_executed([this] { etcd_executed(); });
  for (auto& host : hosts_) host->start();
  for (auto& observer : observers_)
    network_.at(network_.between(0, 500), &observer->machine, [&] { observe(*observer); });
  texts_.start();
  network_.at(seconds(1), nullptr, [this] { fault(); });
  if (network_.one_in(3)) {
    network_.at(network_.between(0, faulty_ / milliseconds(1)), nullptr, [this] {
      is_revoking_ = true;
      judge_.revocation_begins();
      revoke();
    });
  }
  network_.at(faulty_, nullptr, [this] { heal(); });
  const TimePoint end = network_.now() + faulty_ + terms_.config.ttl() * 20;
  while (network_.step(end)) {
    judge_.check_running();
    if (is_settled()) return network_.count(Counted::Settled);
  }
  judge_.broken("a text, a host or a revocation has not ended long after the last fault");
}

/// Every text has ended, every name is a member, and the operator's wait has returned.
bool World::is_settled() const {
  if (!network_.is_calm || is_revoking_ || !texts_.have_all_ended()) return false;
  const auto members =
      std::ranges::count_if(hosts_, [](const auto& host) { return host->is_member(); });
  return members >= kHosts;
}

// ---------------------------------------------------------------- observers

void World::observe(Observer& observer) {
  network_.at(network_.between(500, 900) / (terms_.pace > 1 ? 2 : 1), &observer.machine,
              [&] { observe(observer); });
  if (observer.is_asking) return;
  observer.is_asking = true;
  network_.call(
      observer.machine,
      {.conditions = {}, .success = {etcd::Get{terms_.keys.hosts()}}, .failure = {}},
      [&](const etcd::TransactionReply& reply) {
        observer.is_asking = false;
        const TimePoint now = network_.clock_of(observer.machine);
        observer.hosts.listed(reply.found.front(), now);
        for (Expiry& expiry : observer.hosts.expired(now))
          expire(observer.machine, std::move(expiry));
      },
      [&] { observer.is_asking = false; });
}

void World::expire(Machine& machine, Expiry expiry) {
  if (network_.has(PlantedBug::ExpiryWithoutCompare)) expiry.transaction.conditions.clear();
  network_.call(
      machine, std::move(expiry.transaction),
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
  const Duration time = network_.between(200, 15'000) * scale;
  const auto kind = network_.random().below(12);
  if (kind == 0) return fault_of_observer(time);
  if (kind == 1) return fault_of_etcd(host);
  fault_of(host, time);
}

void World::fault_of(ModelHost& host, Duration time) {
  const TimePoint until = network_.now() + time;
  switch (network_.random().below(9)) {
    case 0:
    case 1:
      host.set_cut(true);
      return network_.at(time, nullptr, [&host] { host.set_cut(false); });
    case 2:
    case 3:
      return host.stop(until);
    case 4:
      return host.stop_agent(until);
    case 5:
      return host.stop_broker(until);
    case 6:
      host.set_unlinked(true);
      return network_.at(time, nullptr, [&host] { host.set_unlinked(false); });
    case 7:
      return host.restart_agent(!network_.one_in(4));
    default:
      return host.restart_broker();
  }
}

void World::fault_of_observer(Duration time) {
  Machine& machine = observers_[network_.random().below(observers_.size())]->machine;
  if (network_.one_in(2))
    machine.stopped_until = std::max(machine.stopped_until, network_.now() + time);
  machine.is_cut = !machine.is_cut;
}

void World::fault_of_etcd(const ModelHost& host) {
  const auto known = static_cast<std::int64_t>(network_.random().below(20));
  network_.etcd().compact({network_.etcd().revision().value - known});
  if (!network_.has(PlantedBug::EarlyDeletionTrusted)) return;
  network_.etcd().execute(
      {.conditions = {},
       .success = {etcd::Delete{etcd::KeyRange::one(terms_.keys.host(host.name()))}},
       .failure = {}});
}

/// What is stopped goes on when its stop ends.
void World::heal() {
  network_.is_calm = true;
  for (auto& host : hosts_) {
    host->set_cut(false);
    host->set_unlinked(false);
  }
  texts_.settle();
  for (auto& observer : observers_) observer->machine.is_cut = false;
}

// ---------------------------------------------------------------- the operator

void World::read_tenant(std::function<void(const TenantView&)> use, std::function<void()> again) {
  const auto later = [this, again] { network_.at(milliseconds(300), &operator_, again); };
  network_.call(
      operator_, ledger_read(terms_.keys, terms_.tenants.front()),
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
            operator_, change_of(terms_.keys, terms_.tenants.front(), CellPolicy{}, view),
            [this, view](const etcd::TransactionReply& reply) {
              network_.trace(fmt::format("the operator revokes, {}", reply.succeeded));
              if (!reply.succeeded) return revoke();
              progress_.emplace(terms_.keys, terms_.tenants.front(), reply.revision, view,
                                terms_.config.slack());
              wait();
            },
            [this] { revoke(); });
      },
      [this] { revoke(); });
}

void World::wait() {
  const auto again = [this] { network_.at(milliseconds(200), &operator_, [this] { wait(); }); };
  network_.call(
      operator_, progress_->next_read(),
      [this, again](const etcd::TransactionReply& reply) {
        const TimePoint now = network_.clock_of(operator_);
        if (const auto read = progress_->replied(reply, now); !read)
          judge_.broken(read.error().detail);
        for (Expiry& expiry : progress_->expired(now)) expire(operator_, std::move(expiry));
        if (!progress_->is_done()) return again();
        network_.count(Counted::Revocations);
        network_.trace("the revocation has ended");
        is_revoking_ = false;
        judge_.revocation_ends();
      },
      again);
}

}  // namespace leasehold::cell::simulation
