/// Memory that was touched after it was taken back, or did not come back: nobody gets it until an
/// operator has looked.
///
/// A value, kept by the extent or weights region it is about. Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "broker/books/ids.hpp"
#include "common/clock.hpp"

namespace leasehold {

/// An operator asked for it; answered when the memory was looked at once more.
struct PendingRelease {
  CallId call;
  std::uint32_t uid = 0;
  std::string reason;  ///< In the operator's words.
};

/// What was found out about the memory.
enum class QuarantineReason : std::uint8_t {
  Touched,      ///< It was not empty any more after its punch.
  NotReturned,  ///< The driver did not show it as free after its last worker had exited.
};

struct Quarantine {
  AttachmentId worker;      ///< The last one that could touch it.
  std::string worker_name;  ///< The worker itself may be forgotten before this is.
  TimePoint since;
  std::uint64_t allocated_bytes = 0;  ///< What had come back after the punch, or had not at all.
  QuarantineReason why = QuarantineReason::Touched;
  std::optional<PendingRelease> pending_release{};
};

}  // namespace leasehold
