/// Divides a tenant's `max_concurrent` among the workers that have live leases of it.
///
/// Invariant: the requests of the tenant that may run, over all its workers, are at most
/// max_concurrent, except for those that ran when the limit was lowered. A share is lowered at once
/// and raised only by what other workers have confirmed to be free.
///
/// Pure. Threads: one.
#pragma once

#include <cstdint>
#include <map>

#include "broker/books/ids.hpp"
#include "ipc/control/messages_worker.hpp"

namespace leasehold {

struct Share {
  std::uint32_t assigned = 0;  ///< Requests that the worker may run.
  /// The most that may run there: a lowered share counts in full until the worker has confirmed it,
  /// and then what still runs.
  std::uint32_t may_run = 0;
  std::uint32_t demand = 0;    ///< Running and waiting there, as reported last.
  std::uint64_t admitted = 0;  ///< As reported last.
  std::uint64_t turn = 0;      ///< Orders workers by their last admission; 0: none yet.
  bool reachable = false;      ///< False while the worker resumes: its share cannot change.
  wire::TenantQuota sent;      ///< Revision 0: nothing.
};

using Shares = std::map<AttachmentId, Share>;

/// Assigns shares. One worker alone gets the whole limit. Several get what they demand, one request
/// each in turn, the longest without an admission first; a share without demand stays where it is.
/// If the limit is less than the number of workers with demand, each may run one request in turn.
void divide(Shares& shares, std::uint32_t limit);

/// Enters a worker's report. Reports about an earlier quota change the demand only.
void enter_report(Shares& shares, AttachmentId worker, const wire::TenantUsage& usage);

}  // namespace leasehold
