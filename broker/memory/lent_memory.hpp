/// Where the memory behind extents and weights regions comes from: the machine, or a device.
///
/// Whatever takes long is answered later, on the loop, in the order asked for about one object.
/// After the answer to `lend` the memory is zero and nobody else's.
///
/// Ownership: every object is here from its first grant until it is proven to be back. Threads: the
/// loop's. Errors: OutOfMemory, SystemError; of a device also ConnectionLost (its agent is gone)
/// and what its driver says.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "broker/decide/event.hpp"
#include "common/unique_fd.hpp"
#include "ipc/region/memory_object.hpp"

namespace leasehold {

class LentMemory {
 public:
  using OnFds = std::move_only_function<void(Result<std::vector<UniqueFd>>)>;
  using OnDone = std::move_only_function<void(std::optional<Error>)>;
  using OnCleared = std::move_only_function<void(ExtentsCleared)>;
  /// Called once or more often, with each extent once.
  using OnVerified = std::move_only_function<void(ExtentsVerified)>;
  using OnScrubbed = std::move_only_function<void(std::uint64_t allocated_bytes)>;

  struct Verification {
    std::vector<ExtentId> extents;
    bool close_anyway = false;
  };

  virtual ~LentMemory() = default;

  /// What the journal can call the extent's object; all zero where objects have no such name.
  virtual Result<MemoryIdentity> name_extent(ExtentId extent, std::size_t size_bytes) = 0;

  /// A descriptor per extent for its worker; makes what does not exist yet, clears what does and
  /// was somebody's. All of them or an error.
  virtual void lend(std::vector<ExtentId> extents, std::size_t size_bytes, OnFds on_fds) = 0;

  /// Gives the pages back, where that can be done beside a mapping.
  virtual void punch(std::span<const ExtentId> extents) = 0;
  /// Calls back when all punches asked for before are done.
  virtual void after_punches(std::move_only_function<void()> then) = 0;
  /// Zeros what its worker has unmapped; what no worker ever got is given up.
  virtual void clear(std::vector<ExtentId> extents, OnCleared on_cleared) = 0;
  /// What is left of each; what is found to be back is closed.
  virtual void verify(Verification asked, OnVerified on_verified) = 0;

  virtual void create_region(RegionId region, std::size_t size_bytes, OnDone on_done) = 0;
  /// Nobody writes to it from here on, where the memory can be made to see to that.
  virtual Result<void> seal_region(RegionId region) = 0;
  /// Of a region that was never published.
  virtual void scrub_region(RegionId region, OnScrubbed on_scrubbed) = 0;
  virtual void close_region(RegionId region) = 0;
  virtual Result<UniqueFd> region_fd(RegionId region, bool writable) const = 0;
  /// What may be kept for a broker that comes after this one; nothing where nothing may.
  virtual const UniqueFd* keepable_fd(RegionId region) const = 0;
};

}  // namespace leasehold
