#include "broker/server/connections/connection_admission.hpp"

#include <algorithm>
#include <utility>

#include "broker/server/connections/operators.hpp"

namespace leasehold {
ConnectionAdmission::Admission ConnectionAdmission::connected(ConnectionId id, uid_t uid,
                                                              TimePoint now) {
  Admission admission{.is_admitted = rates_->admit_connection(uid, now)};
  if (admission.is_admitted && !has_room_for(uid)) {
    admission.displaced = displace_for(uid);
    admission.is_admitted = admission.displaced.has_value();
  }
  if (!admission.is_admitted) ++report_.refused;
  if (!admission.is_admitted) return {};
  if (admission.displaced) ++report_.displaced;
  places_.take(uid);
  ++silent_;
  connections_.emplace(id,
                       Connection{.uid = uid, .first_call_due = now + limits_.first_call_timeout});
  return admission;
}

bool ConnectionAdmission::may_use_reserve(uid_t uid) const {
  return is_operator(uid) || worker_uids_.contains(uid);
}

bool ConnectionAdmission::may_be_displaced(const Connection& connection) const {
  return !connection.holds_lease && !may_use_reserve(connection.uid);
}

bool ConnectionAdmission::has_room_for(uid_t uid) const {
  if (is_operator(uid)) return places_.taken() < limits_.places;
  const std::size_t places = limits_.places - (may_use_reserve(uid) ? 0 : limits_.reserved);
  return may_take_more(
      {.held = places_.held_by(uid), .taken = places_.taken(), .capacity = places});
}

/// Displaces the oldest connection of the user with the most connections, if that user will then
/// still have at least as many as `uid` with the new one; otherwise the oldest of `uid` itself. An
/// operator can displace any connection that may be displaced.
std::optional<ConnectionId> ConnectionAdmission::displace_for(uid_t uid) {
  std::map<uid_t, ConnectionId> oldest_of;
  for (const auto& [id, connection] : connections_) {
    if (may_be_displaced(connection)) oldest_of.emplace(connection.uid, id);
  }
  const auto held_by = [this](const auto& entry) { return places_.held_by(entry.first); };
  auto found = std::ranges::max_element(oldest_of, {}, held_by);
  if (found == oldest_of.end()) return std::nullopt;
  if (!is_operator(uid) && held_by(*found) < places_.held_by(uid) + 2) found = oldest_of.find(uid);
  if (found == oldest_of.end()) return std::nullopt;
  closed(found->second);
  return found->second;
}

void ConnectionAdmission::closed(ConnectionId id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  places_.give_back(found->second.uid);
  if (!found->second.has_called) --silent_;
  connections_.erase(found);
}

std::vector<ConnectionId> ConnectionAdmission::take_silent(TimePoint now) {
  std::vector<ConnectionId> silent;
  for (const auto& [id, connection] : connections_) {
    if (!connection.has_called && connection.first_call_due <= now) silent.push_back(id);
  }
  for (const ConnectionId id : silent) closed(id);
  report_.silent += silent.size();
  return silent;
}

std::optional<ConnectionAdmission::Report> ConnectionAdmission::take_report(TimePoint now) {
  if (report_ == Report{}) return std::nullopt;
  if (reported_at_ && now < *reported_at_ + limits_.log_interval) return std::nullopt;
  reported_at_ = now;
  return std::exchange(report_, {});
}

}  // namespace leasehold
