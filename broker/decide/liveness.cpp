#include "broker/decide/liveness.hpp"

#include <fmt/format.h>

#include "broker/decide/deciders.hpp"
#include "broker/decide/revoke.hpp"

namespace leasehold {
namespace {

constexpr std::uint32_t kLooks = 4;

std::int64_t in_ms(Duration duration) {
  return duration / std::chrono::milliseconds(1);
}

/// The first rung: said while the worker can still go on as if nothing had been.
void warn_of_silence(Decision& decision, const Worker& worker) {
  const std::int64_t timeout_ms = in_ms(decision.state.config.worker_timeout);
  decision.record(events::WorkerUnresponsive{
      .worker = worker.name, .waiting_for = "ping_reply", .timeout_ms = timeout_ms});
  decision.warn(
      fmt::format("worker gives no sign of life, killed when it stays so worker={} pid={} "
                  "timeout_ms={}",
                  worker.name, worker.pid, timeout_ms));
}

void look_at(Decision& decision, Worker& worker) {
  const Duration patience = decision.state.config.worker_timeout;
  if (worker.looks_unanswered == kLooks) {
    return kill_worker(decision, worker, "ping_reply", patience);
  }
  if (worker.looks_unanswered == 0) decision.add(effect::SendPing{worker.id});
  if (worker.looks_unanswered == kLooks / 2) warn_of_silence(decision, worker);
  ++worker.looks_unanswered;
  worker.next_look = decision.now + patience / kLooks;
}

bool is_looked_for(const Worker& worker) {
  return worker.state <= WorkerState::Ready && worker.socket_open && !worker.killed;
}

}  // namespace

void begin_looking(Decision& decision, Worker& worker) {
  const Duration patience = decision.state.config.worker_timeout;
  worker.looks_unanswered = 0;
  if (patience != Duration::zero()) worker.next_look = decision.now + patience / kLooks;
}

void look_for_life(Decision& decision) {
  for (const auto& [id, each] : decision.state.workers.all()) {
    if (each.next_look == TimePoint{} || each.next_look > decision.now) continue;
    Worker& worker = *decision.state.workers.find(id);
    worker.next_look = TimePoint{};
    if (is_looked_for(worker)) look_at(decision, worker);
  }
}

void decide_event(Decision& decision, const PingAnswered& answered) {
  Worker* worker = decision.state.workers.find(answered.worker);
  if (worker != nullptr) worker->looks_unanswered = 0;
}

void note_asked(Decision& decision, LeaseRecord& record) {
  if (record.asked_at != TimePoint{}) return;
  record.asked_at = decision.now;
  decision.state.leases.enter_in_index(record.id());
}

void note_answered(Decision& decision, LeaseRecord& record) {
  const bool more =
      record.grants_in_flight > 0 || !record.shrinks.empty() || !record.late_shrinks.empty();
  record.asked_at = more ? decision.now : TimePoint{};
  decision.state.leases.enter_in_index(record.id());
}

void kill_worker(Decision& decision, Worker& worker, std::string_view waiting_for,
                 Duration patience) {
  worker.killed = true;
  decision.add(effect::KillWorker{worker.id});
  move(worker, WorkerState::Lost);
  decision.touch(worker.id);
  take_back(decision, decision.state.leases.leases_on(worker.id), RevokeReason::WorkerHung);
  decision.record(events::WorkerUnresponsive{.worker = worker.name,
                                             .waiting_for = std::string(waiting_for),
                                             .timeout_ms = in_ms(patience),
                                             .killed = true});
  decision.warn(
      fmt::format("worker did not do its part in time, killed worker={} pid={} waiting_for={} "
                  "timeout_ms={}",
                  worker.name, worker.pid, waiting_for, in_ms(patience)));
}

}  // namespace leasehold
