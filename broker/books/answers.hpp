/// The answer to a call.
#pragma once

#include <variant>

#include "broker/books/ids.hpp"
#include "ipc/control/messages.hpp"

namespace leasehold {

/// The descriptors for an attached worker: lease table, worker segment, wakeup_fd.
struct WorkerDescriptors {
  AttachmentId worker;
};

/// The descriptor of a weights region.
struct RegionDescriptor {
  RegionId region;
  bool writable = false;
};

/// `descriptors` only names descriptors. They are duplicated when the answer is sent, so that the
/// same answer can be sent again.
struct Answer {
  std::variant<wire::Empty, wire::LeasesTouched, wire::LeaseAcquired, wire::LeaseRenewed,
               wire::LeaseResized, wire::LeaseStatus, wire::WorkerAttached, wire::WeightsOpened,
               wire::ExtentShape, wire::QuarantineReleased, wire::PrefixPublished,
               wire::TenantPolicy, wire::AdapterAdded, wire::AdapterOpened, wire::KeyView,
               wire::CellAttached, wire::CellPart>
      body = wire::Empty{};
  std::variant<std::monostate, WorkerDescriptors, RegionDescriptor> descriptors{};
};

}  // namespace leasehold
