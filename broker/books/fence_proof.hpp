/// Evidence that no launch under a lease can happen any more. Elapsed time is not evidence.
///
/// Only the observer that saw the evidence can construct it: constructors are private and the
/// observer is a friend. Proofs may be copied. RecoveryObserver recreates proofs from the journal.
#pragma once

#include <string_view>
#include <variant>

#include "broker/books/ids.hpp"

namespace leasehold {

class QuietObserver;
class ExitObserver;
class GrantObserver;
class AckObserver;
class RecoveryObserver;

/// A proof about one lease. `Observer` creates it, or RecoveryObserver recreates it.
template <class Observer>
class LeaseProof {
 public:
  LeaseId lease() const { return lease_; }

 private:
  friend Observer;
  friend class RecoveryObserver;
  explicit LeaseProof(LeaseId lease) : lease_(lease) {}
  LeaseId lease_;
};

/// A snapshot taken after the lease word was stored shows that every announced unit that could
/// reach the lease has ended. Valid for CPU memory only: on CUDA an announcement covers the host
/// call, not the kernel.
using LaunchQuiet = LeaseProof<QuietObserver>;

/// The worker reports that its last launch under this generation of the lease has finished.
using WorkerAck = LeaseProof<AckObserver>;

/// The grant never left the broker, so the worker had nothing to map. A grant that was sent and
/// refused is *not* this proof: the worker had the descriptors.
using NeverMapped = LeaseProof<GrantObserver>;

/// The worker's pidfd is readable: the process and its mappings no longer exist.
class ProcessExit {
 public:
  AttachmentId worker() const { return worker_; }

 private:
  friend class ExitObserver;
  friend class RecoveryObserver;
  explicit ProcessExit(AttachmentId worker) : worker_(worker) {}
  AttachmentId worker_;
};

/// The machine restarted after the grant. Covers every lease from before the restart.
class MachineRestart {
 private:
  friend class RecoveryObserver;
  MachineRestart() = default;
};

using FenceProof = std::variant<LaunchQuiet, WorkerAck, ProcessExit, NeverMapped, MachineRestart>;

/// "LaunchQuiet", "ProcessExit" …: the names in events and views.
std::string_view name(const FenceProof& proof);

/// True if the proof covers this lease on this worker.
bool covers(const FenceProof& proof, LeaseId lease, AttachmentId worker);

}  // namespace leasehold
