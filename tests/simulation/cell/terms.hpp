/// The terms of one schedule, and a machine's processes and messages.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/cell/host_broker.hpp"
#include "tests/simulation/cell/network.hpp"
#include "tools/cell/decide/cell_keys.hpp"
#include "tools/cell/decide/records.hpp"

namespace leasehold::cell::simulation {

struct Terms {
  CellName cell{"sim"};
  CellKeys keys{cell};
  CellConfig config;
  std::vector<TenantId> tenants;
  Share limits;  ///< Of each tenant.
  int pace = 1;  ///< Texts and polls are slower by this in a cell with a long TTL.
};

/// The blocks of each request: one extent.
inline constexpr std::uint32_t kRequestBlocks = 8;
inline constexpr std::uint64_t kBlockBytes = 256 * 1024;

/// Messages between two processes arrive in the order in which they were sent.
class Channel {
 public:
  /// How long the next message takes.
  Duration delay(Network& network, std::int64_t most_ms) {
    newest_ = std::max(newest_, network.now() + network.between(0, most_ms));
    return newest_ - network.now();
  }

 private:
  TimePoint newest_;
};

/// The broker of a host as its clients reach it.
struct BrokerProcess {
  Machine& machine;  ///< Its clock, and whether the process runs.
  std::unique_ptr<HostBroker> core;
  std::uint64_t life = 0;  ///< Grows when it is killed. Connections end with a life.
};

/// A part of this tenant under which a host may run this much now.
struct Running {
  PartOwner owner;
  Share share;
};

}  // namespace leasehold::cell::simulation
