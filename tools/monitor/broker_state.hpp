/// The replies of a broker to one round of queries.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "ipc/control/messages/audit/audit_state.hpp"
#include "ipc/control/messages/views.hpp"
#include "ipc/control/transport/peer.hpp"

namespace leasehold::monitor {

struct BrokerState {
  wire::StatusView status;
  std::optional<wire::AuditState> audit;  ///< Missing if the broker has no state directory.
  control::Json metrics;                  ///< Reply to `metrics.read` (broker/server/lists.cpp).
  std::vector<wire::TenantView> tenants;
  std::vector<wire::WorkerView> workers;
  /// What the tenants were served, under a bounded number of names (TenantCounts).
  std::vector<wire::TenantServed> served;
};

template <class View>
control::Json array_of(const std::vector<View>& views) {
  control::Json items = control::Json::array();
  for (const View& view : views) items.push_back(view.to_json());
  return items;
}

}  // namespace leasehold::monitor
