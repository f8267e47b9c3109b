/// The state with which a broker starts. It comes from the state directory, the kept descriptors
/// and the processes that are still alive.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "broker/journal/sqlite_journal.hpp"
#include "broker/memory/memory_store.hpp"
#include "broker/recovery/recovery.hpp"
#include "broker/server/lent_device.hpp"
#include "broker/server/start/fd_keeper.hpp"
#include "broker/server/start/options.hpp"
#include "ipc/table/lease_table.hpp"

namespace leasehold {

struct StartupState {
  UniqueFd lock;  ///< Lock on the state directory, held while the broker runs.
  std::unique_ptr<journal::Journal> journal;
  Recovered recovered;
  LeaseTable table;
  bool table_kept = false;
  MemoryStore memory;
  std::set<AttachmentId> kept_workers;
  std::map<AttachmentId, UniqueFd> kept_spills;  ///< Spill files of kept workers.
};

/// Loads the journal and recovers the state. Changes only the broker's own files. Takes the table,
/// the weights and the spill files out of `kept`; the socket and the workers' descriptors stay
/// there. A broker that lends a device takes nothing, because device memory does not outlive its
/// broker. Errors: SocketInUse (another broker uses this directory), FileCorrupt, PermissionDenied,
/// DiskFull, BadRequest (capacity too small, no such directory), OutOfMemory, SystemError.
Result<StartupState> load_startup_state(const BrokerOptions& options, const LentDevice& device,
                                        KeptDescriptors& kept, TimePoint now);

/// The names in the service manager's store that this broker uses.
std::set<std::string> names_in_use(const StartupState& startup);

}  // namespace leasehold
