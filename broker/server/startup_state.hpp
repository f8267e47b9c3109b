/// What a broker starts with: its state directory, what its service manager kept, and what became
/// of the processes it knew.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "broker/journal/sqlite_journal.hpp"
#include "broker/memory/memory_store.hpp"
#include "broker/recovery/recovery.hpp"
#include "broker/server/fd_keeper.hpp"
#include "broker/server/lent_device.hpp"
#include "broker/server/options.hpp"
#include "ipc/table/lease_table.hpp"

namespace leasehold {

struct StartupState {
  UniqueFd lock;  ///< Of the state directory, while the broker lives.
  std::unique_ptr<journal::Journal> journal;
  Recovered recovered;
  LeaseTable table;
  bool table_kept = false;
  MemoryStore memory;
  std::set<AttachmentId> kept_workers;
};

/// Reads, looks and recovers; acts on nothing but its own files. Takes the table and the weights
/// out of `kept`, and leaves there what belongs to connections and workers. Memory of a card does
/// not outlive its broker, so then nothing kept is taken up.
/// Errors: SocketInUse (another broker works with this directory), FileCorrupt, PermissionDenied,
/// DiskFull, BadRequest (a capacity too small, no such directory), OutOfMemory, SystemError.
Result<StartupState> load_startup_state(const BrokerOptions& options, const LentDevice& device,
                                        KeptDescriptors& kept, TimePoint now);

/// Names in the service manager's store that this broker goes on with.
std::set<std::string> names_in_use(const StartupState& startup);

}  // namespace leasehold
