#include "worker/program/request_log.hpp"

#include <spdlog/spdlog.h>

namespace leasehold {
namespace {

constexpr const char* kSentences[]{"request spilled", "request returned from the spill file",
                                   "request not spilled",
                                   "spilled request is computed again"};  // by SpillEvent::Kind

}  // namespace

void RequestLog::log_events(const std::vector<SchedulerEvent>& events) {
  for (const SchedulerEvent& event : events) {
    if (const auto* preempted = std::get_if<Preempted>(&event)) {
      spdlog::debug(
          "request preempted request={} cause={} freed_blocks={} swapped_blocks={} "
          "emitted_tokens={}",
          preempted->engine_request_id.value, name(preempted->cause), preempted->freed_blocks,
          preempted->swapped_blocks, preempted->emitted_tokens);
    }
    const auto* ended = std::get_if<Completed>(&event);
    if (ended == nullptr || !ended->error || ended->error->code != Errc::NumericFault) continue;
    spdlog::error("request ended with a numeric fault request={} emitted_tokens={} reason=\"{}\"",
                  ended->engine_request_id.value, ended->emitted_tokens, ended->error->detail);
  }
}

void RequestLog::log_spills(const std::vector<SpillEvent>& spills) {
  for (const SpillEvent& event : spills) {
    const auto kind = static_cast<std::size_t>(event.kind);
    const char* const sentence = kSentences[kind];
    const std::uint64_t count = ++counts_.at(kind);
    if (!event.why) {
      spdlog::debug("{} request={} blocks={} count={}", sentence, event.engine_request_id.value,
                    event.blocks, count);
      continue;
    }
    spdlog::warn("{} request={} blocks={} count={} error={} reason=\"{}\"", sentence,
                 event.engine_request_id.value, event.blocks, count, name(event.why->code),
                 event.why->detail);
  }
}

}  // namespace leasehold
