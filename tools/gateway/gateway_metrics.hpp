/// What a gateway counts, and its page of metrics.
///
/// Threads: one.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/clock.hpp"
#include "tools/gateway/decide/text_events.hpp"

namespace leasehold::gateway {

class Hosts;

/// What a gateway counts of its cell.
struct CellMetrics {
  TimePoint reached_at;  ///< etcd's newest answer. Zero: none yet.
  std::size_t members = 0;
  std::uint64_t expired = 0;  ///< Hosts that this gateway has expired.
};

struct GatewayMetrics {
  /// Indexed by the status of the answer; 0: the client left.
  std::map<int, std::uint64_t> requests;
  std::array<std::uint64_t, kMoveCauseCount> moves{};  ///< Indexed by MoveCause.
  std::map<std::string, std::uint64_t> failed_texts;   ///< Indexed by the code of their error.
  std::uint64_t not_replayable = 0;  ///< Texts that could not continue elsewhere: memory was short.
  std::uint64_t bytes = 0;           ///< Bytes of answers that were written to clients.
  std::uint32_t running = 0;         ///< Texts in progress.
  std::uint32_t uploads = 0;         ///< Uploads in progress.
  std::uint32_t connections = 0;
  std::optional<CellMetrics> cell;  ///< Nothing: the hosts are a list.

  /// The page, in the format that Prometheus reads.
  std::string page(const Hosts& hosts, TimePoint now) const;
};

}  // namespace leasehold::gateway
