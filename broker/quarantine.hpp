/// Memory that was touched after it was taken back: nobody gets it until an operator has looked.
///
/// A value, kept by the extent or weights region it is about. Threads: one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "broker/ids.hpp"
#include "common/clock.hpp"

namespace leasehold {

/// An operator asked for it; answered when the memory was looked at once more.
struct Clearing {
  CallId call;
  std::uint32_t uid = 0;
  std::string reason;  ///< In the operator's words.
};

struct Quarantine {
  AttachmentId worker;      ///< The last one that could touch it.
  std::string worker_name;  ///< The worker itself may be forgotten before this is.
  TimePoint since;
  std::uint64_t allocated_bytes = 0;  ///< What had come back after the punch.
  std::optional<Clearing> clearing{};
};

}  // namespace leasehold
