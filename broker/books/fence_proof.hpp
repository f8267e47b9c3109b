/// Evidence that no launch under a lease can happen any more. Time passing is not evidence.
///
/// Each kind says what it covers and can be made only by the component that saw it: the
/// constructors are private, the witness is a friend. Copying evidence is fine; making it up does
/// not compile. RecoveryObserver reads back what a witness of a broker before this one had
/// journaled.
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

/// Every announced unit that could reach the lease is over, by a snapshot taken after the flip.
/// For memory on the CPU only: on CUDA an announcement covers the host call, not the kernel.
class LaunchQuiet {
 public:
  LeaseId lease() const { return lease_; }

 private:
  friend class QuietObserver;
  friend class RecoveryObserver;
  explicit LaunchQuiet(LeaseId lease) : lease_(lease) {}
  LeaseId lease_;
};

/// The worker itself says, for this very generation, that its last touching launch has finished.
class WorkerAck {
 public:
  LeaseId lease() const { return lease_; }

 private:
  friend class AckObserver;
  friend class RecoveryObserver;
  explicit WorkerAck(LeaseId lease) : lease_(lease) {}
  LeaseId lease_;
};

/// The pidfd of the worker polled readable: the process and its mappings are gone.
class ProcessExit {
 public:
  AttachmentId worker() const { return worker_; }

 private:
  friend class ExitObserver;
  friend class RecoveryObserver;
  explicit ProcessExit(AttachmentId worker) : worker_(worker) {}
  AttachmentId worker_;
};

/// The grant never left the broker, so there was nothing to map. A grant that was sent and answered
/// with an error is *not* this: the descriptors were in the worker's hands.
class NeverMapped {
 public:
  LeaseId lease() const { return lease_; }

 private:
  friend class GrantObserver;
  friend class RecoveryObserver;
  explicit NeverMapped(LeaseId lease) : lease_(lease) {}
  LeaseId lease_;
};

/// The machine was started anew since the lease was granted; covers every lease from before.
class MachineRestart {
 private:
  friend class RecoveryObserver;
  MachineRestart() = default;
};

using FenceProof = std::variant<LaunchQuiet, WorkerAck, ProcessExit, NeverMapped, MachineRestart>;

/// "LaunchQuiet", "ProcessExit" …, as in events and views.
std::string_view name(const FenceProof& proof);

/// True when the proof speaks about this lease on this worker.
bool covers(const FenceProof& proof, LeaseId lease, AttachmentId worker);

}  // namespace leasehold
