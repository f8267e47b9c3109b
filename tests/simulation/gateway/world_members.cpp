// Which hosts the gateway has: those of a list, or the members of a cell.
#include <fmt/format.h>

#include "tests/simulation/gateway/world.hpp"

namespace leasehold::gateway::simulation {

/// The operator changes the list of hosts. The host itself goes on.
void World::set_listed(HostId changed, bool is_listed) {
  trace(fmt::format("host {} {} the list", changed.value, is_listed ? "enters" : "leaves"));
  if (is_cell_) {
    Incarnation& incarnation = incarnations_[changed.value];
    if (is_listed == (incarnation != Incarnation{})) return;
    incarnation = is_listed ? Incarnation{++revision_} : Incarnation{};
    return is_listed ? use_members() : leave_cell(changed);
  }
  std::vector<std::string> list;
  for (std::uint64_t i = 0; i < hosts_.size(); ++i) {
    const HostId host{i};
    if (host == changed ? is_listed : table_->is_listed(host))
      list.push_back(table_->address(host));
  }
  (void)table_->set_list(list);  // a list without hosts is refused
}

/// The gateway closes its connections to the host; what has arrived may be read first.
void World::leave_cell(HostId host) {
  for (const auto& [attempt, connection] : connections_)
    if (connection.host == host) judge_.delivered_fault(attempt);
  use_members();
  if (one_in(2)) cut_connections(host);
}

void World::use_members() {
  std::vector<CellMember> members;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    if (incarnations_[i] == Incarnation{}) continue;
    members.push_back(
        {.address = fmt::format("10.0.0.{}:8000", i), .incarnation = incarnations_[i]});
  }
  table_->set_members(members);
}

bool World::is_of_gone_host(const TextEvent& event) const {
  const auto* bytes = std::get_if<HostBytes>(&event);
  if (bytes == nullptr) return false;
  const Connection& connection = connections_.at(bytes->attempt);
  const bool is_gone = connection.incarnation != table_->incarnation(connection.host);
  coverage_.gone_bytes += is_gone;
  return is_gone;
}

}  // namespace leasehold::gateway::simulation
