/// The first memory of tenants' leases, which has no pages until a request of the lease arrives, so
/// that an idle lease costs none.
///
///   granted ──note──► Idle ──take──► (request arrived) ──fill──► Filling ─► (has pages)
///
/// The fence proof covers only pages that units make. Here a thread makes them, so it reads the
/// lease's word afterwards: once the lease is fenced, the broker may have punched the memory
/// before, and the thread punches it again. The worker reports memory as unmapped or returned
/// when no fill of its lease is in progress.
///
/// A unit that runs before the fill ends makes the pages that it needs.
///
/// Threads: `note`, `take` and `forget` from any thread; the rest on the I/O thread. Lifetime:
/// everything in Dependencies outlives it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <mutex>
#include <set>
#include <vector>

#include "ipc/region/memory_object.hpp"
#include "ipc/table/table_reader.hpp"

namespace leasehold {

class IdleMemory {
 public:
  struct Dependencies {
    boost::asio::io_context* io = nullptr;
    boost::asio::any_io_executor mapper;  ///< Runs one thread.
    const TableReader* table = nullptr;
  };
  explicit IdleMemory(Dependencies dependencies) : deps_(std::move(dependencies)) {}

  /// Memory without pages was granted to the lease.
  void note(LeaseId lease);
  /// Returns true once for each noted lease: the caller then fills its memory.
  bool take(LeaseId lease);
  /// The lease has ended.
  void forget(LeaseId lease) { (void)take(lease); }

  /// Makes the pages of `objects`, all memory of the lease, on the mapper's thread. Does nothing
  /// for a fenced lease. Precondition: no fill of this lease is in progress.
  void fill(LeaseId lease, std::vector<MemoryObject> objects);
  bool is_filling(LeaseId lease) const { return filling_.contains(lease); }

 private:
  void make_pages(LeaseId lease, std::vector<MemoryObject>& objects) const;

  Dependencies deps_;
  std::mutex mutex_;
  std::set<LeaseId> idle_;     // guarded by mutex_
  std::set<LeaseId> filling_;  // I/O thread
};

}  // namespace leasehold
