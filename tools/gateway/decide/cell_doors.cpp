#include "tools/gateway/decide/cell_doors.hpp"

#include <fmt/format.h>

#include <utility>

namespace leasehold::gateway {
namespace {

struct Owner {
  cell::HostName host;
  CellMember member;
};

}  // namespace

CellDoors doors_of(const std::map<cell::HostName, cell::SilentHosts::Seen>& hosts) {
  CellDoors doors;
  std::map<std::string, Owner> owners;
  for (const auto& [host, seen] : hosts) {
    if (!seen.record) {
      doors.problems.push_back(seen.record.error().detail);
      continue;
    }
    if (seen.record->doors.empty()) {
      doors.problems.push_back(
          fmt::format("host {} names no door; start its agent with --door", host.value));
    }
    for (const std::string& address : seen.record->doors) {
      Owner owner{host,
                  {.address = address,
                   .incarnation = {static_cast<std::uint64_t>(seen.incarnation.value)},
                   .is_draining = seen.record->is_draining,
                   .host = host.value}};
      const auto [known, is_new] = owners.try_emplace(address, owner);
      if (is_new) continue;
      if (known->second.member.incarnation < owner.member.incarnation)
        std::swap(known->second, owner);
      if (known->second.host == owner.host) continue;
      doors.problems.push_back(fmt::format(
          "hosts {} and {} name the door {}; it is that of {}, which joined last", owner.host.value,
          known->second.host.value, address, known->second.host.value));
    }
  }
  for (auto& [address, owner] : owners) doors.members.push_back(std::move(owner.member));
  return doors;
}

}  // namespace leasehold::gateway
