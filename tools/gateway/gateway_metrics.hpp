/// What a gateway counts, and its page of metrics.
///
/// Threads: one.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "tools/gateway/decide/text_events.hpp"

namespace leasehold::gateway {

class Hosts;

struct GatewayMetrics {
  std::map<int, std::uint64_t> requests;  ///< By the status of the answer; 0: client left.
  std::array<std::uint64_t, kMoveCauseCount> moves{};  ///< By MoveCause.
  std::map<std::string, std::uint64_t> failed_texts;   ///< By the code of their error.
  std::uint64_t not_replayable = 0;  ///< Texts that could not continue elsewhere: memory was short.
  std::uint64_t bytes = 0;           ///< Of answers, written to clients.
  std::uint32_t running = 0;         ///< Texts.
  std::uint32_t uploads = 0;         ///< Uploads in progress.
  std::uint32_t connections = 0;

  /// The page, in the format that Prometheus reads.
  std::string page(const Hosts& hosts) const;
};

}  // namespace leasehold::gateway
