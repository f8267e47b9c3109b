// A worker that computes on a card: its steps are launches, and the broker asks when they are over.
#include <bit>

#include "broker/supervise/ack_observer.hpp"
#include "tests/simulation/card_launcher.hpp"
#include "tests/simulation/model_worker.hpp"

namespace leasehold::simulation {
namespace {

constexpr std::uint32_t kMaxUnits = 4;
constexpr UnitLabel kAttention{LaunchSite::AttentionScores, 0, Touches::TenantMemory};
constexpr UnitLabel kWeights{LaunchSite::FfnUp, 0, Touches::WeightsAndScratch};

}  // namespace

void Worker::open_card() {
  if (deps_.card == nullptr) return;
  launcher_ = std::make_unique<CardLauncher>(deps_, *this, *threads_[0].gate, threads_[0].unit);
}

bool Worker::run_card() {
  return launcher_ && !is_dead() && launcher_->stream().run();
}

void Worker::open_unit(UnitState& unit, Touches touches, SequenceMask live) {
  std::vector<LeaseId> leases{step_engine_};
  for (SequenceMask todo = live; todo != 0; todo &= todo - 1) {
    if (touches != Touches::TenantMemory) break;
    const Part& part = in_step_[static_cast<std::size_t>(std::countr_zero(todo))];
    leases.push_back(part.lease);
    if (part.shared) leases.push_back(*part.shared);
    if (part.adapter) leases.push_back(*part.adapter);
  }
  deps_.judge.unit_opened(unit, touches, std::move(leases));
}

Launch Worker::make_launch(Touches touches) const {
  Launch launch{.touches = touches, .engine = step_engine_};
  for (const Part& part : in_step_) launch.rows.push_back({part.lease, part.extents});
  return launch;
}

/// Runs a step of single launches, or one graph.
void Worker::run_step_on_card() {
  launcher_->begin(*set_);
  if (deps_.machine.one_in(3)) {
    Launch graph = make_launch(Touches::TenantMemory);
    graph.segments = 2 + deps_.machine.pick(3);
    launcher_->unit(*set_, kAttention, graph);
  } else {
    const std::uint32_t units = 1 + deps_.machine.pick(kMaxUnits);
    for (std::uint32_t i = 0; i < units; ++i) {
      const UnitLabel& label = i % 3 == 1 ? kWeights : kAttention;
      launcher_->unit(*set_, label, make_launch(label.touches));
      Fiber::pause();
    }
  }
  launcher_->wait_all(*set_);
}

/// The commit has a gate of its own; its unit writes the records and waits for the write.
SequenceMask Worker::commit_on_card() {
  constexpr UnitLabel kCommit{LaunchSite::Commit, 0, Touches::TenantMemory};
  Thread& thread = threads_[1];
  thread.unit.called_at = deps_.machine.step;
  return thread.gate->run(*set_, kCommit, [&](const LaunchPermit& permit) {
    open_unit(thread.unit, kCommit.touches, permit.live());
    Launch records = make_launch(kCommit.touches);
    records.called_at = thread.unit.called_at;
    records.live = permit.live();
    launcher_->write_records(records);
    thread.unit.open = false;
  });
}

/// The reply is evidence, so it waits for the last launch, not for the stop request.
void Worker::on_settle(LeaseId lease, std::uint64_t number) {
  if (state_of(lease) == LeaseState::Live) {
    const Error live{Errc::IllegalTransition, "lease is live; revoke it first"};
    return reply(number, SettleAnswered{lease, std::nullopt, live});
  }
  auto settled = [this, lease, number] {
    reply(number,
          SettleAnswered{lease, AckObserver::observe(lease, control::Payload{}), std::nullopt});
  };
  if (deps_.planted_bugs.settle_immediately) return settled();
  launcher_->when_settled(settled);
}

}  // namespace leasehold::simulation
