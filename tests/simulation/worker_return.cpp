// A worker whose broker died: it reconnects to the next one with what it still maps, or exits.
#include <algorithm>

#include "tests/simulation/adapters/worker_adapters.hpp"
#include "tests/simulation/model_worker.hpp"

namespace leasehold::simulation {

using Phase = ReconnectState::Phase;

void Worker::lose_socket() {
  deps_.machine.close(*link_, Connection::kClient);
  broker_lost();
}

void Worker::broker_lost() {
  call_pending_ = false;
  if (!ready_) path_.give_up();  // it has not finished starting
  path_.connection_lost(deps_.machine.clock.now());
  if (adapters_) post([this] { adapters_->broker_lost(); });
}

/// A refused worker serves until its leases are over, then exits.
void Worker::reconnect() {
  if (path_.phase() == Phase::Disconnected && path_.next_attempt() <= deps_.machine.clock.now()) {
    try_to_return();
  }
  if (path_.phase() == Phase::Lost && leases_are_over()) kill_pending = true;
}

bool Worker::leases_are_over() const {
  return std::ranges::all_of(held_, [this](const auto& entry) {
    const bool over = is_expired(entry.first) || state_of(entry.first) != LeaseState::Live;
    return over && !entry.second.running;
  });
}

void Worker::try_to_return() {
  if (deps_.persistent.broker->is_dead()) return path_.connect_failed(deps_.machine.clock.now());
  connect();
  path_.connected();
  ask_to_resume();
}

void Worker::ask_to_resume() {
  broker_->ask(*link_, wire::WorkerAttach{.worker = name_, .resume = attachment},
               [this](const Result<Answer>& answer) {
                 if (!answer) return failed(answer.error().code);
                 path_.resumed();
                 deps_.machine.reach_then(FaultSite::WorkerResumed, *this, [this] { deliver(); });
               });
}

void Worker::deliver() {
  std::erase_if(objects_, [](const auto& entry) { return entry.second.empty(); });
  undelivered_ = objects_.size();
  if (undelivered_ == 0) return settle();
  for (const auto& [lease, extents] : objects_) {
    broker_->ask(*link_,
                 wire::LeaseRedeliver{.lease = lease, .extents = {extents.begin(), extents.end()}},
                 [this](const Result<Answer>& answer) {
                   if (!answer) return failed(answer.error().code);
                   if (--undelivered_ == 0) settle();
                 });
  }
}

void Worker::settle() {
  deps_.machine.reach_then(FaultSite::WorkerRedelivered, *this, [this] {
    broker_->ask(*link_, readiness(), [this](const Result<Answer>& answer) {
      if (!answer) return failed(answer.error().code);
      path_.reattached();
      for (const auto& [lease, held] : held_) deps_.adapters->returned(lease, is_live(lease));
      if (adapters_) post([this] { adapters_->reconnected(); });
      for (auto& [lease, held] : held_) held.reported_drained = false;
      on_draining();
      if (asleep_) report_weights();
      call_pending_ = false;
    });
  });
}

void Worker::failed(Errc code) {
  if (path_.phase() != Phase::Resuming && path_.phase() != Phase::Redelivering) return;
  deps_.machine.close(*link_, Connection::kClient);
  path_.request_failed(code, deps_.machine.clock.now());
}

}  // namespace leasehold::simulation
