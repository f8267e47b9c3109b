/// A broker's lease table and a worker's segment in one process, for gates that check real words.
#pragma once

#include <cstdint>

#include "common/result.hpp"
#include "ipc/table/lease_table.hpp"
#include "ipc/table/table_reader.hpp"
#include "ipc/table/worker_segment.hpp"

namespace leasehold {

struct LocalLeases {
  LeaseTable table;
  TableReader reader;
  WorkerSegmentReader segment;
  WorkerSegmentWriter writer;

  /// Errors: OutOfMemory.
  static Result<LocalLeases> create(std::uint32_t slots);

  /// Revokes the lease in the table, as a broker does.
  void revoke(LeaseId lease) { store(lease, LeaseState::Revoked); }
  void store(LeaseId lease, LeaseState state);
};

}  // namespace leasehold
