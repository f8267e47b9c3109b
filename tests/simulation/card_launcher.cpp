#include "tests/simulation/card_launcher.hpp"

#include "tests/simulation/coverage.hpp"
#include "tests/simulation/model_worker.hpp"

namespace leasehold::simulation {
namespace {

constexpr UnitLabel kPoll{LaunchSite::Embedding, 0, Touches::Nothing};

}  // namespace

/// The stream's next launch waits for this write.
void CardLauncher::write_mirror(SequenceMask live) {
  mirrored_live_ = live;
  stream_.write_mirror(++epoch_, live);
}

void CardLauncher::begin(const GateSet& set) {
  write_mirror(gate_.poll(set, kPoll));
}

bool CardLauncher::collect_finished() {
  const std::uint64_t finished = stream_.finished_count();
  if (finished == watch_.finished_count()) return false;
  settled_by_ = CardEvent::SettledByEnd;
  watch_.finished(finished);
  return true;
}

/// In the product's order: reads who waits before it compares the words.
void CardLauncher::poll(const GateSet& set) {
  const std::uint64_t unstamped = watch_.unstamped();
  const SequenceMask live = gate_.poll(set, kPoll);
  if (live != mirrored_live_) write_mirror(live);
  if (unstamped != 0) watch_.stamp(unstamped, epoch_);
  settled_by_ = CardEvent::SettledByGate;
  watch_.seen(stream_.seen_epoch());
}

void CardLauncher::unit(const GateSet& set, UnitLabel label, const Launch& launch) {
  while (watch_.issued_count() - watch_.finished_count() >= kLaunchesInFlight) {
    if (collect_finished()) continue;
    poll(set);
    Fiber::pause();
  }
  unit_.called_at = deps_.machine.step;
  const SequenceMask live = gate_.run(set, label, [&](const LaunchPermit& permit) {
    worker_.open_unit(unit_, label.touches, permit.live());
    if (permit.live() != mirrored_live_) write_mirror(permit.live());
    if (deps_.machine.reach(FaultSite::WorkerUnitPolled, worker_)) Fiber::pause();
    Launch made = launch;
    made.called_at = unit_.called_at;
    made.live = permit.live();
    made.waits_for = deps_.planted_bugs.mirror_not_awaited ? 0 : epoch_;
    stream_.launch(std::move(made));
    Fiber::pause();
    watch_.issued();
    unit_.open = false;
  });
  if (live != mirrored_live_) write_mirror(live);
}

void CardLauncher::wait_all(const GateSet& set) {
  while (watch_.finished_count() < watch_.issued_count()) {
    collect_finished();
    poll(set);
    Fiber::pause();
  }
}

void CardLauncher::write_records(const Launch& launch) {
  Launch made = launch;
  made.asks_for_rows = false;
  made.waits_for = epoch_;
  stream_.launch(std::move(made));
  const std::uint64_t all = watch_.issued_count() + 1;
  while (stream_.finished_count() < all) Fiber::pause();
  watch_.issued();
  collect_finished();
}

void CardLauncher::when_settled(std::move_only_function<void()> callback) {
  if (!stream_.is_idle()) deps_.coverage.happened(CardEvent::SettleWaited);
  settled_by_ = CardEvent::SettledImmediately;
  watch_.when_settled([this, callback = std::move(callback)]() mutable {
    deps_.coverage.happened(settled_by_);
    callback();
  });
}

}  // namespace leasehold::simulation
