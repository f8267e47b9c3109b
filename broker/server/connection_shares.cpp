#include "broker/server/connection_shares.hpp"

#include <algorithm>
#include <map>

namespace leasehold {

std::optional<ConnectionId> connection_to_close(std::span<const HeldConnection> held,
                                                uid_t newcomer) {
  std::map<uid_t, std::size_t> count_of;
  std::map<uid_t, ConnectionId> oldest_of;
  for (const HeldConnection& each : held) {
    ++count_of[each.uid];
    if (each.is_kept) continue;
    const auto [oldest, first] = oldest_of.emplace(each.uid, each.id);
    if (!first) oldest->second = std::min(oldest->second, each.id);
  }
  const auto largest = std::ranges::max_element(
      oldest_of, {}, [&count_of](const auto& entry) { return count_of.at(entry.first); });
  if (largest == oldest_of.end()) return std::nullopt;
  if (count_of.at(largest->first) < count_of[newcomer] + 2) return std::nullopt;
  return largest->second;
}

}  // namespace leasehold
