#include "broker/server/event_logger.hpp"

#include <spdlog/spdlog.h>

namespace leasehold {
namespace {

constexpr std::size_t kLogEntriesPerDecision = 64;

struct LogVisitor {
  void operator()(const events::LeaseStateChanged& e) const {
    spdlog::info("lease state changed lease={} state={} reason={} tenant={} proof={}",
                 to_string(e.lease), name(e.state), name(e.reason), e.tenant, e.proof);
  }
  void operator()(const events::RegionStateChanged& e) const {
    spdlog::debug("memory state changed region={} kind={} state={} lease={}", e.region, e.kind,
                  e.state, e.lease);
  }
  void operator()(const events::Rebind& e) const {
    spdlog::info(
        "request rebound tenant={} request={} old_lease={} new_lease={} prompt_tokens={} "
        "emitted_tokens={} mode={} latency_us={}",
        e.tenant, e.request.value, to_string(e.old_lease), to_string(e.new_lease), e.prompt_tokens,
        e.emitted_tokens, wire::name(e.mode), e.latency_ns < 0 ? -1 : e.latency_ns / 1000);
  }
  void operator()(const events::OperatorAction& e) const {
    spdlog::log(e.done ? spdlog::level::info : spdlog::level::warn,
                "operator action action={} object={} uid={} done={} reason=\"{}\"", e.action,
                e.object, e.uid, e.done, e.reason);
  }
  void operator()(const events::WorkerReplacement& e) const {
    spdlog::info("worker replacement {} worker={} by={} moved={} ended={}", e.state, e.worker, e.by,
                 e.leases_moved, e.leases_ended);
  }
  void operator()(const events::WorkerService& e) const {
    const bool is_lost = e.state == "out_of_service";
    spdlog::log(is_lost ? spdlog::level::err : spdlog::level::info,
                "worker service changed worker={} state={} reason=\"{}\"", e.worker, e.state,
                e.reason);
  }
  void operator()(const events::KeyExpired& e) const {
    spdlog::info("API key expired key={} tenant={} name={}", e.key, e.tenant, e.name);
  }
  void operator()(const events::CellMembership& e) const {
    spdlog::info("membership of a cell changed cell={} incarnation={}", e.cell.value,
                 e.incarnation);
  }
  void operator()(const events::AdapterLoaded& e) const {
    spdlog::info("adapter loaded adapter={} version={} tenant={} lease={} worker={} size_bytes={}",
                 e.adapter.value, e.version, e.tenant, to_string(e.lease), e.worker, e.size_bytes);
  }
  void operator()(const events::AdapterEvicted& e) const {
    spdlog::info("adapter evicted adapter={} version={} tenant={} lease={} worker={} reason={}",
                 e.adapter.value, e.version, e.tenant, to_string(e.lease), e.worker,
                 name(e.reason));
  }
  // Nothing is logged for these two events, because the decision also emits a warning.
  void operator()(const events::WorkerUntrusted&) const {}
  void operator()(const events::WorkerUnresponsive&) const {}
  void operator()(const auto& e) const {
    spdlog::debug("worker event event={}", events::name(events::Event(e)));
  }
};

}  // namespace

void EventLogger::log(const events::Event& event, TimePoint at) {
  if (is_within_limit(at)) std::visit(LogVisitor{}, event);
}

void EventLogger::log_file(const Result<std::uint64_t>& lost_events) {
  if (!lost_events) {
    spdlog::error("the event log file loses events reason=\"{}\"", lost_events.error().detail);
  } else if (*lost_events > 0) {
    spdlog::warn("the event log file continues lost_events={}", *lost_events);
  }
}

bool EventLogger::is_within_limit(TimePoint at) {
  if (at != decision_at_) {
    if (count_ > kLogEntriesPerDecision) {
      spdlog::info("omitted further events of one decision events={}",
                   count_ - kLogEntriesPerDecision);
    }
    decision_at_ = at;
    count_ = 0;
  }
  return ++count_ <= kLogEntriesPerDecision;
}

}  // namespace leasehold
