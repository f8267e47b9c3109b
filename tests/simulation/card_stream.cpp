#include "tests/simulation/card_stream.hpp"

#include "tests/simulation/coverage.hpp"
#include "tests/simulation/model_worker.hpp"

namespace leasehold::simulation {

bool CardStream::run() {
  const bool write = !writes_.empty() && (launches_.empty() || machine_.one_in(3));
  if (!write && run_launch()) return true;
  if (writes_.empty()) return false;
  mirror_ = writes_.front();
  writes_.pop_front();
  return true;
}

bool CardStream::run_launch() {
  if (launches_.empty()) return false;
  if (!worker_.is_running()) coverage_.happened(CardEvent::RanWhileWorkerStopped);
  Launch& launch = launches_.front();
  switch (stage_) {
    case Stage::Waits:
      if (mirror_.epoch < launch.waits_for) {
        coverage_.happened(CardEvent::WaitedForMirror);
        return false;
      }
      segment_ = 0;
      stage_ = launch.segments > 1 ? Stage::Gate : Stage::Begins;
      return true;
    case Stage::Gate:
      seen_epoch_ = mirror_.epoch;
      stage_ = Stage::Begins;
      return true;
    case Stage::Begins:
      begin_kernel(launch);
      stage_ = Stage::Works;
      return true;
    case Stage::Works:
      touch(launch);
      end_segment();
      return true;
  }
  return false;
}

/// A kernel learns which rows of its step are live from the mirror only. With no row live, the
/// engine is stopped too.
void CardStream::begin_kernel(Launch& launch) {
  working_ = launch.asks_for_rows ? mirror_.live : launch.live;
  if (mirror_.live == 0) working_ = 0;
  if ((launch.live & ~working_) != 0) coverage_.happened(CardEvent::RanEmpty);
  if (mirror_.live != 0) judge_.kernel_began(launch);
  touch(launch);
}

void CardStream::touch(Launch& launch) {
  if (launch.touches != Touches::TenantMemory) return;
  for (std::size_t i = 0; i < launch.rows.size(); ++i) {
    if ((working_ >> i & 1) != 0) judge_.kernel_touches(worker_, launch, launch.rows[i]);
  }
}

void CardStream::end_segment() {
  const bool more = ++segment_ < launches_.front().segments;
  stage_ = more ? Stage::Gate : Stage::Waits;
  if (more) return;
  launches_.pop_front();
  ++finished_;
}

}  // namespace leasehold::simulation
