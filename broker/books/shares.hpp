/// Divides a tenant's `max_concurrent` among the workers that have live leases of it.
///
/// Invariant: over all workers, at most max_concurrent requests of the tenant may run, except for
/// requests that were running when the limit was lowered. A share is lowered at once. It is raised
/// only into the part of the limit that other workers have confirmed to be free.
///
/// Pure. Threads: one.
#pragma once

#include <cstdint>
#include <map>

#include "broker/books/ids.hpp"
#include "ipc/control/messages/worker.hpp"

namespace leasehold {

struct Share {
  std::uint32_t assigned = 0;  ///< Requests that the worker may run.
  /// Upper bound on the requests that run on the worker. A lowered share counts at its earlier
  /// value until the worker has confirmed the new one; then the requests that still run count.
  std::uint32_t may_run = 0;
  std::uint32_t demand = 0;    ///< Running and waiting requests in the last report.
  std::uint64_t admitted = 0;  ///< Requests admitted, in the last report.
  std::uint64_t turn = 0;      ///< Orders workers by their last admission; 0: none yet.
  bool reachable = false;      ///< False while the worker resumes: the share cannot change.
  wire::TenantQuota sent;      ///< The quota sent last. Revision 0: none.
  std::uint64_t reported = 0;  ///< Revision of the quota in the last report.

  bool is_confirmed() const { return sent.revision != 0 && reported == sent.revision; }
};

using Shares = std::map<AttachmentId, Share>;

/// Assigns shares. A single worker gets the whole limit. Several workers get what they demand, one
/// request each in turn; the worker whose last admission is the oldest comes first. A share that
/// exceeds the worker's demand is lowered only as far as the others need it. If the limit is less
/// than the number of workers with demand, they take turns with one request each.
void divide(Shares& shares, std::uint32_t limit);

/// Enters a worker's report. A report about an earlier quota does not change `may_run`. Returns how
/// many requests the worker has admitted since its last report. The worker counts from zero again
/// when it gets a lease of the tenant after it had none, and so does its share.
std::uint64_t enter_report(Shares& shares, AttachmentId worker, const wire::TenantUsage& usage);

}  // namespace leasehold
