/// The memory behind extents and weights regions: host memory or device memory.
///
/// Slow operations reply later, on the event loop; replies about one object keep the order of the
/// calls. Memory that `lend` delivers is zero and belongs to one lease.
///
/// Ownership: holds every object from its first grant until its return is proven. Threads: the
/// io_context's thread. Errors: OutOfMemory, SystemError; for a device also ConnectionLost (the
/// agent has ended) and errors of the driver.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "broker/decide/event.hpp"
#include "common/machine/unique_fd.hpp"
#include "ipc/region/memory_object.hpp"

namespace leasehold {

class LentMemory {
 public:
  using OnFds = std::move_only_function<void(Result<std::vector<UniqueFd>>)>;
  using OnDone = std::move_only_function<void(std::optional<Error>)>;
  using OnCleared = std::move_only_function<void(ExtentsCleared)>;
  /// Called one or more times; each extent is reported once.
  using OnVerified = std::move_only_function<void(ExtentsVerified)>;
  using OnScrubbed = std::move_only_function<void(std::uint64_t allocated_bytes)>;

  struct Verification {
    std::vector<ExtentId> extents;
    bool close_anyway = false;  ///< Close the objects even if they are not empty.
  };

  virtual ~LentMemory() = default;

  /// Delivers one descriptor per extent, or an error. Device memory is allocated now, or cleared if
  /// a worker has unmapped it; host memory exists (HostMemory::create_extent).
  virtual void lend(std::vector<ExtentId> extents, std::size_t size_bytes, OnFds on_fds) = 0;

  /// Frees the pages while they may still be mapped. A no-op for device memory.
  virtual void punch(std::span<const ExtentId> extents) = 0;
  /// Zeros extents that their worker has unmapped. Drops extents that no worker ever received.
  virtual void clear(std::vector<ExtentId> extents, OnCleared on_cleared) = 0;
  /// Reports the bytes still allocated in each extent and closes the objects that are empty.
  virtual void verify(Verification request, OnVerified on_verified) = 0;

  virtual void create_region(RegionId region, std::size_t size_bytes, OnDone on_done) = 0;
  /// Makes the region read-only for all processes. A no-op for device memory.
  virtual Result<void> seal_region(RegionId region) = 0;
  /// Frees the pages of a region that was never published, and closes the region if it is then
  /// empty.
  virtual void scrub_region(RegionId region, OnScrubbed on_scrubbed) = 0;
  virtual void close_region(RegionId region) = 0;
  virtual Result<UniqueFd> region_fd(RegionId region, bool writable) const = 0;
  /// The descriptor to keep for the next broker; null for memory that does not outlive this one.
  virtual const UniqueFd* keepable_fd(RegionId region) const = 0;
};

}  // namespace leasehold
