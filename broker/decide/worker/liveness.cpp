#include "broker/decide/worker/liveness.hpp"

#include <fmt/format.h>

#include "broker/decide/deciders.hpp"
#include "broker/decide/lease/revoke.hpp"

namespace leasehold {
namespace {

constexpr std::uint32_t kProbesPerTimeout = 4;

std::int64_t in_ms(Duration duration) {
  return duration / std::chrono::milliseconds(1);
}

/// Warns when half of the timeout has passed. A worker that answers after the warning loses
/// nothing.
void warn_unresponsive(Decision& decision, const Worker& worker) {
  const std::int64_t timeout_ms = in_ms(decision.state.config.timeouts.worker);
  decision.record(events::WorkerUnresponsive{
      .worker = worker.name, .waiting_for = "ping_reply", .timeout_ms = timeout_ms});
  decision.warn(
      fmt::format("worker does not answer pings; it will be killed worker={} pid={} timeout_ms={}",
                  worker.name, worker.pid, timeout_ms));
}

void probe_worker(Decision& decision, Worker& worker) {
  const Duration timeout = decision.state.config.timeouts.worker;
  if (worker.checks_since_ping == kProbesPerTimeout) {
    return kill_worker(decision, worker, "ping_reply", timeout);
  }
  if (worker.checks_since_ping == 0) decision.add(effect::SendPing{worker.id});
  if (worker.checks_since_ping == kProbesPerTimeout / 2) warn_unresponsive(decision, worker);
  ++worker.checks_since_ping;
  worker.next_probe = decision.now + timeout / kProbesPerTimeout;
}

bool is_probed(const Worker& worker) {
  return worker.state <= WorkerState::Ready && worker.socket_open && !worker.killed;
}

}  // namespace

void start_liveness_probes(Decision& decision, Worker& worker) {
  const Duration timeout = decision.state.config.timeouts.worker;
  worker.checks_since_ping = 0;
  if (timeout != Duration::zero()) worker.next_probe = decision.now + timeout / kProbesPerTimeout;
}

void probe_liveness(Decision& decision) {
  for (const auto& [id, each] : decision.state.workers.all()) {
    if (each.next_probe == TimePoint{} || each.next_probe > decision.now) continue;
    Worker& worker = *decision.state.workers.find(id);
    worker.next_probe = TimePoint{};
    if (is_probed(worker)) probe_worker(decision, worker);
  }
}

void decide_event(Decision& decision, const PingAnswered& answered) {
  Worker* worker = decision.state.workers.find(answered.worker);
  if (worker != nullptr) worker->checks_since_ping = 0;
}

void note_call_sent(Decision& decision, LeaseRecord& record) {
  if (record.calls.waiting_since != TimePoint{}) return;
  record.calls.waiting_since = decision.now;
  decision.state.leases.enter_in_index(record.id());
}

void note_call_answered(Decision& decision, LeaseRecord& record) {
  PendingCalls& calls = record.calls;
  calls.waiting_since = calls.worker_owes_answer() ? decision.now : TimePoint{};
  decision.state.leases.enter_in_index(record.id());
}

void kill_worker(Decision& decision, Worker& worker, std::string_view waiting_for,
                 Duration timeout) {
  worker.killed = true;
  decision.add(effect::KillWorker{worker.id});
  move(worker, WorkerState::Lost);
  decision.touch(worker.id);
  revoke_leases(decision, decision.state.leases.leases_on(worker.id), RevokeReason::WorkerHung);
  decision.record(events::WorkerUnresponsive{.worker = worker.name,
                                             .waiting_for = std::string(waiting_for),
                                             .timeout_ms = in_ms(timeout),
                                             .killed = true});
  decision.warn(fmt::format(
      "worker timed out and its leases are revoked worker={} pid={} waiting_for={} timeout_ms={}",
      worker.name, worker.pid, waiting_for, in_ms(timeout)));
}

}  // namespace leasehold
