/// What a cell of ten thousand hosts and a million tenants costs its etcd: transactions and bytes
/// of the real records, counted.
#pragma once

#include <cstdint>

namespace leasehold::cell::scale {

struct CellSize {
  int hosts = 10'000;
  int tenants = 1'000'000;
  double requests_per_hour = 1;  ///< Of each tenant.
  double lost_share = 0.01;      ///< Of the hosts, at once.
};

struct Load {
  double writes_per_s = 0;         ///< The busiest second while nothing fails.
  double loss_writes_per_s = 0;    ///< The busiest second of the minute after the loss.
  double watch_bytes_per_s = 0;    ///< Of one host.
  double gateway_bytes_per_s = 0;  ///< Of one gateway.
  double etcd_mib = 0;             ///< Live records, and changes that are not compacted yet.
};

Load load_of(const CellSize& size);

/// CPU time of one placement among these hosts, in milliseconds.
double placement_ms(int hosts);

}  // namespace leasehold::cell::scale
