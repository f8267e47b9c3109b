/// The replies of a broker to one round of queries.
#pragma once

#include <vector>

#include "ipc/control/messages/views.hpp"
#include "ipc/control/transport/peer.hpp"

namespace leasehold::monitor {

struct BrokerState {
  wire::StatusView status;
  control::Json metrics;  ///< Reply to `metrics.read` (broker/server/lists.cpp).
  std::vector<wire::TenantView> tenants;
  std::vector<wire::WorkerView> workers;
  /// What the tenants were served, under a bounded number of names (TenantCounts).
  std::vector<wire::TenantServed> served;
};

}  // namespace leasehold::monitor
