// The worker's threads: steps, units, commit. The real gate makes every decision.
#include <algorithm>
#include <bit>

#include "tests/simulation/model_worker.hpp"

namespace leasehold::simulation {
namespace {

constexpr std::uint32_t kUnitsPerStep = 2;  // of each thread

UnitLabel label_of(std::uint32_t unit) {
  if (unit % 2 == 0) return {LaunchSite::AttentionScores, 0, Touches::TenantMemory};
  return {LaunchSite::FfnUp, 0, Touches::WeightsAndScratch};
}

}  // namespace

bool Worker::run(std::uint32_t index) {
  Thread& thread = threads_[index];
  const bool has_turn = index == 0 ? has_work() : helper_units_ > 0;
  if (!thread.fiber || (!thread.busy && !has_turn)) return false;
  StoreBuffer::current = &thread.buffer;
  thread.fiber->resume();
  StoreBuffer::current = nullptr;
  return true;
}

bool Worker::drain(std::uint32_t index) {
  StoreBuffer& buffer = threads_[index].buffer;
  if (buffer.empty()) return false;
  buffer.drain_one();
  return true;
}

bool Worker::has_work() const {
  if (!posted_.empty()) return true;
  if (!engine_lease_ || !weights_ready_) return false;
  return std::ranges::any_of(held_,
                             [](const auto& entry) { return entry.second.running.has_value(); });
}

void Worker::engine() {
  for (;;) {
    while (!has_work()) Fiber::pause();
    threads_[0].busy = true;
    while (!posted_.empty()) {
      const Message message = std::move(posted_.front());
      posted_.pop_front();
      message();
      while (!is_running()) Fiber::pause();  // stopped by the message
    }
    form_step();
    if (!in_step_.empty()) {
      run_step();
      commit();
    }
    report_drained();
    if (deps_.machine.one_in(3)) grow_swap();
    threads_[0].busy = false;
    Fiber::pause();
  }
}

void Worker::run_step() {
  if (launcher_) return run_step_on_card();
  helper_units_ = kUnitsPerStep;
  run_units(threads_[0], kUnitsPerStep);
  while (helper_units_ > 0) Fiber::pause();
}

void Worker::helper() {
  for (;;) {
    while (helper_units_ == 0) Fiber::pause();
    threads_[1].busy = true;
    run_units(threads_[1], kUnitsPerStep);
    helper_units_ = 0;
    threads_[1].busy = false;
  }
}

void Worker::form_step() {
  in_step_.clear();
  if (!engine_lease_ || !weights_ready_) return;
  set_.emplace(++step_, stops_, static_cast<RefusalListener&>(*this));
  step_engine_ = *engine_lease_;
  set_->add_engine_lease(table_->dependency(step_engine_).value());
  for (const auto& [lease, held] : held_) {
    if (!held.running) continue;
    std::vector<LeaseDependency> needed{table_->dependency(lease).value()};
    const std::optional<LeaseId> shared = held.running->shared;
    if (shared && !deps_.planted_bugs.reader_not_gated)
      needed.push_back(table_->dependency(*shared).value());
    set_->add_sequence(needed, held.running->stop_slot);
    in_step_.push_back({lease, held.extents, shared, {}});  // with copies from and to swap
    std::ranges::copy(held.swap, std::back_inserter(in_step_.back().extents));
    if (shared) in_step_.back().shared_extents = held_.at(*shared).extents;
  }
}

void Worker::run_units(Thread& thread, std::uint32_t count) {
  for (std::uint32_t unit = 0; unit < count; ++unit) {
    run_unit(thread, label_of(unit));
    Fiber::pause();
  }
}

SequenceMask Worker::run_unit(Thread& thread, UnitLabel label) {
  thread.unit.called_at = deps_.machine.step;
  return thread.gate->run(*set_, label, [&](const LaunchPermit& permit) {
    open_unit(thread.unit, label.touches, permit.live());
    if (deps_.machine.reach(FaultSite::WorkerUnitPolled, *this)) Fiber::pause();
    if (label.touches == Touches::TenantMemory) touch_memory(thread, permit.live());
    Fiber::pause();
    if (label.touches == Touches::TenantMemory) touch_memory(thread, permit.live());
    if (label.site == LaunchSite::Commit) write_records(permit.live());
    thread.unit.open = false;
  });
}

void Worker::touch_memory(Thread& thread, SequenceMask live) {
  for (SequenceMask todo = live; todo != 0; todo &= todo - 1) {
    const Part& part = in_step_[static_cast<std::size_t>(std::countr_zero(todo))];
    for (const ExtentId extent : part.extents) {
      deps_.judge.touched(*this, thread.unit, part.lease, extent);
    }
    for (const ExtentId extent : part.shared_extents)
      deps_.judge.touched(*this, thread.unit, *part.shared, extent);
  }
}

void Worker::commit() {
  if (deps_.machine.reach(FaultSite::WorkerCommitBeforeRecord, *this)) Fiber::pause();
  const Judge::CommitTime time{.begun = deps_.machine.step,
                               .decided_at = deps_.machine.clock.now()};
  if (!deps_.planted_bugs.commit_without_clock) stop_expired();
  SequenceMask decided = set_->all();
  if (!deps_.planted_bugs.commit_without_reread && launcher_) {
    decided = commit_on_card();
  } else if (!deps_.planted_bugs.commit_without_reread) {
    decided = run_unit(threads_[0], {LaunchSite::Commit, 0, Touches::TenantMemory});
  }
  if (deps_.machine.reach(FaultSite::WorkerCommitAfterRecord, *this)) Fiber::pause();
  for (std::size_t i = 0; i < in_step_.size(); ++i) {
    const auto held = held_.find(in_step_[i].lease);
    if ((decided >> i & 1) == 0 || held == held_.end() || !held->second.running) continue;
    deps_.judge.token_emitted(*held->second.running->request, time);
    emit(held->second);
  }
  if (set_->engine_refused()) weights_ready_ = false;
}

/// Called at most once per sequence and step, inside the unit that saw the refusal: it must not
/// pause.
void Worker::refused(const GateRefusal& refusal) noexcept {
  if (refusal.sequence == GateRefusal::kEngine) return;  // the whole step fails; requests wait
  const auto held = held_.find(in_step_[refusal.sequence].lease);
  if (held != held_.end() && held->second.running) end(held->second);
}

void Worker::refusing_unit_ended() noexcept {
  deps_.persistent.broker->wake();
}

}  // namespace leasehold::simulation
