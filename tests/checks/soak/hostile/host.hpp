/// What a hostile run needs from the machine: other users, and a small disk.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "tests/checks/local_system/program_starter.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::soak {

/// The users under which tenants and attackers run. Assigns user ids that own no file and no other
/// process. Without other users each function returns nothing, and every program runs as the user
/// of this process.
class Users {
 public:
  /// Uses other users if this process can start a program as one of them, which needs root.
  static Users create(const ProgramStarter& programs);

  bool are_others() const { return others_; }
  std::optional<uid_t> honest(std::uint32_t index) const { return number(index); }
  std::optional<uid_t> tenant(std::uint32_t index) const { return number(kMaxOfAKind + index); }
  std::optional<uid_t> stranger(std::uint32_t index) const {
    return number(2 * kMaxOfAKind + index);
  }

  static constexpr std::uint32_t kMaxOfAKind = 32;

 private:
  explicit Users(bool others) : others_(others) {}
  std::optional<uid_t> number(std::uint32_t index) const {
    return others_ ? std::optional<uid_t>(kFirst + index) : std::nullopt;
  }

  static constexpr uid_t kFirst = 64'000;
  bool others_;
};

/// The directory of the broker's journal, on a disk of its own that is small: a journal that does
/// not stay within its bounds fills it during the attack.
///
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
