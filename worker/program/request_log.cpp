#include "worker/program/request_log.hpp"

#include <spdlog/spdlog.h>

namespace leasehold {
namespace {

constexpr const char* kSentences[]{"request spilled", "request returned from the spill file",
                                   "request not spilled",
                                   "spilled request is computed again"};  // by SpillEvent::Kind

}  // namespace

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
