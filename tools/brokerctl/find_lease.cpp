#include "tools/brokerctl/find_lease.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ipc/client/parse_message.hpp"

namespace leasehold::brokerctl {

Result<wire::LeaseView> find_lease(LeaseId id, const Dependencies& dependencies) {
  // Reads one entry of the list: a lease never changes its slot.
  wire::Json params{{"limit", 1}};
  if (id.slot > 0) params["after"] = id.slot - 1;
  const wire::Json reply = TRY(dependencies.call("lease.list", params));
  const auto found = TRY(client::parse_items<wire::LeaseView>(reply));
  const bool is_in_use = !found.empty() && found.front().lease.slot == id.slot;
  if (!is_in_use || found.front().lease.generation < id.generation) {
    return fail(
        Errc::UnknownLease,
        fmt::format(
            "lease {} is not listed: it was never granted, or ended before the broker started",
            to_string(id)));
  }
  if (found.front().lease != id) {
    return fail(Errc::StaleGeneration,
                fmt::format("lease {} is over and lease {} uses its slot; "
                            "see: brokerctl events --lease {}",
                            to_string(id), to_string(found.front().lease), to_string(id)));
  }
  return found.front();
}

}  // namespace leasehold::brokerctl
