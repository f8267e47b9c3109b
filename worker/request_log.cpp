#include "worker/request_log.hpp"

#include <spdlog/spdlog.h>

namespace leasehold {

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

}  // namespace leasehold
