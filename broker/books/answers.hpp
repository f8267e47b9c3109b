/// What a call is answered with.
#pragma once

#include <variant>

#include "broker/books/ids.hpp"
#include "ipc/control/messages.hpp"

namespace leasehold {

/// The descriptors of an attached worker: lease table, worker line, eventfd.
struct WorkerDescriptors {
  AttachmentId worker;
};

/// One descriptor of a weights region.
struct RegionDescriptor {
  RegionId region;
  bool writable = false;
};

/// Descriptors are named here and duplicated when the answer leaves, so an answer can be given
/// twice.
struct Answer {
  std::variant<wire::Empty, wire::LeasesTouched, wire::LeaseAcquired, wire::LeaseRenewed,
               wire::LeaseResized, wire::WorkerAttached, wire::WeightsOpened, wire::ExtentShape,
               wire::QuarantineReleased>
      body = wire::Empty{};
  std::variant<std::monostate, WorkerDescriptors, RegionDescriptor> descriptors{};
};

}  // namespace leasehold
