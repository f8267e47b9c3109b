// What happens without any process where memory of a card is lent.
#include "tests/simulation/agent_client.hpp"
#include "tests/simulation/world.hpp"

namespace leasehold::simulation {
namespace {

constexpr std::uint64_t kCardBytes = (kExtents + 12) * kExtentBytes;
constexpr std::uint32_t kMaxCardPace = 16;
constexpr int kCardIdleRounds = 40;

}  // namespace

void World::begin_card() {
  card_.emplace(machine_, kCardBytes);
  judge_.watch(*card_);
  deps_.card = &*card_;
  persistent_.store = false;  // a broker that lends a card keeps no descriptors
  if (machine_.one_in(2)) card_pace_ = 1 + machine_.pick(kMaxCardPace);
}

bool World::run_card() {
  const std::uint32_t what = machine_.pick(100);
  if (what < 80) {
    return machine_.one_in(card_pace_) && workers_[machine_.pick(kWorkers)]->run_card();
  }
  if (what < 89) return card_->finish_teardown();
  if (what < 92) return card_->disturb();
  if (what < 94) return stop_worker();
  return disturb_card();
}

/// Memory returned by a running worker is lent to the next lease on that worker; once the worker
/// has exited, to any lease.
void World::lend_again() {
  if (!broker().is_running()) return;
  revoke_some_leases();
  run_until_idle(kCardIdleRounds);
  for (Tenant* tenant : tenants_) {
    if (tenant->is_running()) tenant->act();
  }
  run_until_idle(kCardIdleRounds);
  if (machine_.one_in(3)) workers_[machine_.pick(kWorkers)]->kill_pending = true;
}

/// Stops a worker's process at any point; its card works on.
bool World::stop_worker() {
  Worker& worker = *workers_[machine_.pick(kWorkers)];
  if (machine_.fault->triggered == nullptr || !worker.is_running() || machine_.one_in(2))
    return false;
  worker.stopped_at = machine_.clock.now();
  worker.life = Life::Stopped;
  return true;
}

/// Most agents live as long as their broker. The others end at any point, with or without pending
/// calls; some hang first.
bool World::disturb_card() {
  if (!broker().is_running() || !machine_.one_in(12)) return false;
  Agent& agent = broker().agent_client()->agent();
  if (agent.is_dead()) return false;
  if (machine_.one_in(3)) {
    agent.hang();
  } else {
    machine_.kill(agent);
  }
  return true;
}

/// The card is slower than its worker's launches, so that work is queued when words are revoked.
bool World::run_card_until_idle() {
  bool moved = false;
  for (Worker* worker : workers_) {
    if (machine_.one_in(1 + card_pace_ / 2)) moved = worker->run_card() || moved;
    if (machine_.one_in(1 + card_pace_)) moved = worker->run_card() || moved;
  }
  while (card_->finish_teardown()) moved = true;
  return moved;
}

}  // namespace leasehold::simulation
