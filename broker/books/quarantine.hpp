/// Quarantined memory: its teardown is unproven, so no lease gets it until an operator releases it.
///
/// A value, kept by its extent or weights region. Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "broker/books/ids.hpp"
#include "common/clock.hpp"

namespace leasehold {

/// An operator's release that waits for the memory to be verified once more.
struct PendingRelease {
  CallId call;
  std::uint32_t uid = 0;
  std::string reason;  ///< As the operator gave it.
};

/// Why the memory is quarantined.
enum class QuarantineReason : std::uint8_t {
  Touched,      ///< It was not empty after its punch.
  NotReturned,  ///< The driver did not report it free after its last worker exited.
};

struct Quarantine {
  AttachmentId worker;      ///< The last worker that could write to it.
  std::string worker_name;  ///< Kept here because the worker record may be dropped first.
  TimePoint since;
  std::uint64_t allocated_bytes = 0;  ///< Allocated after the punch, or not reported free.
  QuarantineReason why = QuarantineReason::Touched;
  std::optional<PendingRelease> pending_release{};
};

}  // namespace leasehold
