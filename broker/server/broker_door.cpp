#include "broker/server/broker_door.hpp"

#include <unistd.h>

#include <algorithm>

#include "broker/server/connection_shares.hpp"

namespace leasehold {
namespace {

bool is_operators(uid_t uid) {
  return uid == 0 || uid == ::geteuid();
}

}  // namespace

BrokerDoor::Admission BrokerDoor::connected(ConnectionId id, uid_t uid, TimePoint now) {
  if (!rates_->admit_connection(uid, now)) return {};
  Admission admission{.is_admitted = true};
  if (!has_room_for(uid)) {
    admission.displaced = displace_for(uid);
    if (!admission.displaced) return {};
  }
  connections_.emplace(id,
                       Connection{.uid = uid, .first_call_due = now + limits_.first_call_timeout});
  return admission;
}

bool BrokerDoor::may_use_reserve(uid_t uid) const {
  return is_operators(uid) || worker_uids_.contains(uid);
}

bool BrokerDoor::has_room_for(uid_t uid) const {
  const std::size_t places = limits_.places - (may_use_reserve(uid) ? 0 : limits_.reserved);
  if (connections_.size() >= places) return false;
  const auto held = std::ranges::count_if(
      connections_, [uid](const auto& entry) { return entry.second.uid == uid; });
  return is_operators(uid) || static_cast<std::size_t>(held) < limits_.of_one_user;
}

std::optional<ConnectionId> BrokerDoor::displace_for(uid_t uid) {
  std::vector<HeldConnection> held;
  held.reserve(connections_.size());
  for (const auto& [id, connection] : connections_) {
    held.push_back({id, connection.uid, connection.holds_lease || may_use_reserve(connection.uid)});
  }
  const auto displaced = connection_to_close(held, uid);
  if (displaced) closed(*displaced);
  return displaced;
}

std::vector<ConnectionId> BrokerDoor::take_silent(TimePoint now) {
  std::vector<ConnectionId> silent;
  std::erase_if(connections_, [&](const auto& entry) {
    const auto& [id, connection] = entry;
    if (connection.has_called || now < connection.first_call_due) return false;
    silent.push_back(id);
    return true;
  });
  return silent;
}

}  // namespace leasehold
