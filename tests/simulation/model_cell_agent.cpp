#include "tests/simulation/model_cell_agent.hpp"

#include <limits>

namespace leasehold::simulation {
namespace {

const CellName kCell{"cell"};
constexpr std::uint32_t kActsOneIn = 3;
constexpr std::uint32_t kAllBlocks = 48;

}  // namespace

TimePoint CellAgent::in(std::uint32_t least_ms, std::uint32_t more_ms) {
  return deps_.machine.clock.now() +
         std::chrono::milliseconds(least_ms + deps_.machine.pick(more_ms));
}

void CellAgent::join() {
  has_joined_ = true;
  deps_.judge.belongs_to_cell(tenant_);
  move_ceiling(in(4000, 1));
  change_part(16 + deps_.machine.pick(32));
}

/// A broker that has restarted knows no agent, so each call follows an attach.
void CellAgent::move_ceiling(TimePoint ceiling) {
  Broker& broker = *deps_.persistent.broker;
  broker.call(wire::CellAttach{.cell = kCell});
  const std::size_t number = deps_.judge.ceiling_sent(ceiling);
  broker.call(
      wire::CellCeiling{.incarnation = incarnation_, .ceiling_boottime_ns = ceiling.boottime_ns},
      [&judge = deps_.judge, number](const Result<Answer>& answer) {
        if (answer) judge.ceiling_applied(number);
      });
}

void CellAgent::change_part(std::uint32_t blocks) {
  deps_.persistent.broker->call(wire::CellAdmit{.policy = {.tenant = {tenant_},
                                                           .max_concurrent = blocks == 0 ? 0u : 1u,
                                                           .max_blocks = blocks,
                                                           .ttl_ms = 3000,
                                                           .max_adapters = 2,
                                                           .max_adapter_bytes = 2 * kExtentBytes,
                                                           .cell = kCell},
                                                .incarnation = incarnation_,
                                                .revision = ++revision_});
}

bool CellAgent::act() {
  Machine& machine = deps_.machine;
  if (!has_joined_ || !machine.one_in(kActsOneIn)) return false;
  switch (machine.pick(8)) {
    case 0:
      ++incarnation_;
      move_ceiling(in(0, 4000));
      break;
    case 1:
      move_ceiling({});
      break;
    case 2:
    case 3:
      move_ceiling(in(0, 600));
      break;
    default:
      move_ceiling(in(1000, 4000));
  }
  if (machine.one_in(2)) change_part(machine.one_in(6) ? 0 : 8 + machine.pick(40));
  return true;
}

void CellAgent::serve_without_end() {
  if (!has_joined_) return;
  move_ceiling({std::numeric_limits<std::int64_t>::max()});
  change_part(kAllBlocks);
}

}  // namespace leasehold::simulation
