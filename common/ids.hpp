/// Strong id types. They do not convert to each other.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace leasehold {

/// A number that compares only with its own type.
template <class Tag>
struct StrongId {
  std::uint64_t value = 0;
  auto operator<=>(const StrongId&) const = default;
};

using WorkerId = StrongId<struct WorkerTag>;  ///< Index of the worker in the lease table.
using ExtentId = StrongId<struct ExtentTag>;  ///< Not reused while a broker runs.
/// One attach of one worker process. Increases and is never reused, so a late reply cannot be
/// mistaken for a reply of the worker that has the same `WorkerId` now.
using AttachmentId = StrongId<struct AttachmentTag>;
using RegionId = StrongId<struct RegionTag>;  ///< A weights region; never reused.

/// A strong name: 1 to 64 characters of [A-Za-z0-9._:-].
template <class Tag>
struct StrongName {
  std::string value;
  auto operator<=>(const StrongName&) const = default;

  /// Errors: BadRequest for text that is empty, too long, or has other characters.
  static Result<StrongName> parse(std::string_view text);
};

using TenantId = StrongName<struct TenantTag>;
using RequestId = StrongName<struct RequestTag>;

/// A lease: one (slot, generation) of the lease table. Printed as "17.4".
struct LeaseId {
  std::uint32_t slot = 0;
  std::uint64_t generation = 0;  ///< 1 … 2^48 - 1; zero is not a lease.
  auto operator<=>(const LeaseId&) const = default;

  /// Errors: BadRequest unless the text is "<slot>.<generation>" within range.
  static Result<LeaseId> parse(std::string_view text);
};

std::string to_string(LeaseId id);

}  // namespace leasehold

template <class Tag>
struct std::hash<leasehold::StrongId<Tag>> {
  std::size_t operator()(leasehold::StrongId<Tag> id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value);
  }
};

template <class Tag>
struct std::hash<leasehold::StrongName<Tag>> {
  std::size_t operator()(const leasehold::StrongName<Tag>& name) const noexcept {
    return std::hash<std::string>{}(name.value);
  }
};

template <>
struct std::hash<leasehold::LeaseId> {
  std::size_t operator()(leasehold::LeaseId id) const noexcept {
    return std::hash<std::uint64_t>{}(id.generation * 0x9E3779B97F4A7C15ull + id.slot);
  }
};
