// What happens by itself where memory of a card is lent.
#include "tests/simulation/agent_line.hpp"
#include "tests/simulation/world.hpp"

namespace leasehold::simulation {

bool World::run_card() {
  const std::uint32_t what = machine_.pick(100);
  if (what < 80) return workers_[machine_.pick(kWorkers)]->run_card();
  if (what < 90) return card_->take_apart();
  if (what < 94) return card_->disturb();
  return disturb_card();
}

/// Most agents live as long as their broker. Those that end do so at any point, with calls under
/// way or without; some hang first.
bool World::disturb_card() {
  if (!broker().is_running() || !machine_.one_in(8)) return false;
  Agent& agent = broker().agent_line()->agent();
  if (agent.is_dead()) return false;
  if (machine_.one_in(3)) {
    agent.hang();
  } else {
    machine_.kill(agent);
  }
  return true;
}

bool World::calm_card() {
  bool moved = false;
  for (Worker* worker : workers_) {
    while (worker->run_card()) moved = true;
  }
  while (card_->take_apart()) moved = true;
  return moved;
}

}  // namespace leasehold::simulation
