/// Quarantined memory is memory whose teardown is unproven. No lease gets it until an operator
/// releases it.
///
/// The record of a quarantined extent or weights region contains a Quarantine. Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "broker/books/ids.hpp"
#include "common/clock.hpp"

namespace leasehold {

/// A release by an operator. It waits until the memory has been verified once more.
struct PendingRelease {
  CallId call;
  std::uint32_t uid = 0;
  std::string reason;  ///< The operator's words, unchanged.
};

/// Why the memory is quarantined.
enum class QuarantineReason : std::uint8_t {
  Touched,      ///< Pages were allocated again after the punch.
  NotReturned,  ///< The driver did not report it free after its last worker exited.
};

struct Quarantine {
  AttachmentId worker;      ///< The last worker that could write to it.
  std::string worker_name;  ///< Kept here because the worker record may be dropped first.
  TimePoint since;
  std::uint64_t allocated_bytes = 0;  ///< Bytes allocated after the punch, or not reported free.
  QuarantineReason why = QuarantineReason::Touched;
  std::optional<PendingRelease> pending_release{};
};

}  // namespace leasehold
