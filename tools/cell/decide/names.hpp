/// Names and numbers that hosts of a cell share.
#pragma once

#include "common/ids.hpp"
#include "ipc/control/messages/cell/host_name.hpp"
#include "ipc/control/messages/common.hpp"
#include "ipc/etcd/etcd_types.hpp"

namespace leasehold::cell {

using leasehold::HostName;

/// The random number of one beat. A host that reads a number it sent knows that its beat arrived.
using BeatId = StrongId<struct CellBeatTag>;

/// One membership of a host: the revision that created its key. A later one has a greater number.
using Incarnation = etcd::Revision;

/// One host in one incarnation: the owner of a part.
struct PartOwner {
  HostName host;
  Incarnation incarnation;
  auto operator<=>(const PartOwner&) const = default;
};

}  // namespace leasehold::cell
