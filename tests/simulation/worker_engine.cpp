// The worker's threads: steps, units, commit. The real gate makes every decision.
#include <algorithm>
#include <bit>

#include "tests/simulation/adapters/worker_adapters.hpp"
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
  if (!posted_.empty() || (adapters_ && adapters_->has_slices())) return true;
  if (!engine_lease_ || !weights_ready_) return false;
  return std::ranges::any_of(held_, [](const auto& entry) {
    return entry.second.running.has_value() || entry.second.fill.has_value();
  });
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
    if (adapters_) adapters_->work();
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
    if (held.fill) add_fill(lease, held);
    if (!held.running) continue;
    std::vector<LeaseDependency> needed{table_->dependency(lease).value()};
    const std::optional<LeaseId> shared = held.running->shared;
    if (shared && !deps_.planted_bugs.reader_not_gated)
      needed.push_back(table_->dependency(*shared).value());
    const AdapterUse& adapter = held.running->adapter;
    if (adapter && !deps_.planted_bugs.adapter_not_gated)
      needed.push_back(table_->dependency(adapter->lease).value());
    set_->add_sequence(needed, held.running->stop_slot);
    in_step_.push_back({lease, held.extents, shared, {}});  // with copies from and to swap
    Part& part = in_step_.back();
    std::ranges::copy(held.swap, std::back_inserter(part.extents));
    if (shared) part.shared_extents = held_.at(*shared).extents;
    part.request = held.running->request;
    if (!adapter) continue;
    part.adapter = adapter->lease;
    part.adapter_extents = held_.at(adapter->lease).extents;
    part.content = held.running->text.adapter;
  }
  note_shared_adapters();
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
    if (part.shared)
      deps_.adapters->read_published(*part.shared, part.content, part.shared_extents);
    if (part.adapter) read_adapter(part, thread.unit);
  }
}

void Worker::note_shared_adapters() const {
  for (std::size_t i = 1; i < in_step_.size(); ++i) {
    const Part& last = in_step_[i - 1];
    const bool are_requests = last.request != nullptr && in_step_[i].request != nullptr;
    const bool is_same = last.adapter && last.adapter == in_step_[i].adapter;
    if (are_requests && is_same && last.request->tenant != in_step_[i].request->tenant)
      deps_.coverage.happened(AdapterEvent::ReadTogether);
  }
}

void Worker::note_version(const LoadedAdapter* adapter) const {
  if (adapter == nullptr) return;
  const auto* newest = deps_.persistent.broker->state.adapters.find({adapter->name});
  if (newest == nullptr || newest->version != adapter->version)
    deps_.coverage.happened(AdapterEvent::OldVersionRead);
}

void Worker::read_adapter(const Part& part, const UnitState& unit) {
  for (const ExtentId extent : part.adapter_extents)
    deps_.judge.touched(*this, unit, *part.adapter, extent);
  static const std::string kNoTenant;
  const std::string& tenant = part.request == nullptr ? kNoTenant : part.request->tenant;
  deps_.adapters->read({*part.adapter, part.content, tenant}, part.adapter_extents);
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
    if ((decided >> i & 1) == 0 || held == held_.end()) continue;
    if (held->second.fill) publish(held->first, held->second);
    if (!held->second.running) continue;
    deps_.judge.token_emitted(*held->second.running->request, time);
    note_version(held->second.running->adapter.get());
    emit(held->second);
  }
  if (set_->engine_refused()) weights_ready_ = false;
}

/// Called at most once per sequence and step, inside the unit that saw the refusal: it must not
/// pause.
void Worker::refused(const GateRefusal& refusal) noexcept {
  if (refusal.sequence == GateRefusal::kEngine) return;  // the whole step fails; requests wait
  const auto held = held_.find(in_step_[refusal.sequence].lease);
  if (held == held_.end()) return;
  if (held->second.fill) return refuse_fill(held->first, held->second);
  if (!held->second.running) return;
  const bool is_adapters = is_live(held->first) && held->second.running->adapter &&
                           !is_live(held->second.running->adapter->lease);
  end(held->second, is_adapters ? StreamEnd::AdapterOver : StreamEnd::LeaseOver);
}

void Worker::refusing_unit_ended() noexcept {
  deps_.persistent.broker->wake();
}

}  // namespace leasehold::simulation
