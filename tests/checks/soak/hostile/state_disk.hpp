/// The directory of the broker's journal, on a disk of its own that is small: a journal that does
/// not stay within its bounds fills it during the attack.
#pragma once

#include <cstdint>
#include <string>

#include "common/machine/temporary_directory.hpp"

namespace leasehold::soak {

/// Lifetime: outlives the broker, because its end removes the files. Threads: that of its creation,
/// which also starts the broker (tests/checks/local_system/small_disk.hpp).
class StateDisk {
 public:
  /// Errors: SystemError.
  static Result<StateDisk> create();
  ~StateDisk();
  StateDisk(StateDisk&& other) noexcept = default;
  StateDisk& operator=(StateDisk&&) = delete;

  std::string path() const { return directory_.path(); }
  /// 0 without the right to mount: the directory is on the disk of all temporary files.
  std::uint64_t size_bytes() const { return size_bytes_; }
  std::uint64_t used_bytes() const;

 private:
  explicit StateDisk(TemporaryDirectory directory);

  TemporaryDirectory directory_;
  std::uint64_t size_bytes_ = 0;
};

}  // namespace leasehold::soak
