/// What a host announces of itself, from what its broker says, and which of its workers to drain.
/// Pure.
#pragma once

#include <string>
#include <vector>

#include "ipc/control/messages/audit.hpp"
#include "ipc/control/messages/views.hpp"
#include "tools/cell/decide/records.hpp"

namespace leasehold::cell {

/// The part of HostRecord that the broker knows.
struct HostFacts {
  std::vector<OfferedModel> models;
  std::uint32_t free_blocks = 0;
  std::string audit_head;
  bool operator==(const HostFacts&) const = default;
};

/// The models of workers that are ready and not drained or replaced, each name once, in the
/// order of the names.
std::vector<OfferedModel> models_of(const std::vector<wire::WorkerView>& workers);

/// See HostRecord::audit_head. Empty for an empty chain.
std::string audit_head_of(const wire::AuditPage& page);

/// The names of the workers that a host has to drain, or to undrain, so that all of them drain or
/// none does.
std::vector<std::string> workers_to_change(const std::vector<wire::WorkerView>& workers,
                                           bool is_draining);

}  // namespace leasehold::cell
