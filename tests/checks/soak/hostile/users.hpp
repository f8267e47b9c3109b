/// The users that tenants and attackers of a hostile run have.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "tests/checks/local_system/program_starter.hpp"

namespace leasehold::soak {

/// Numbers that own no file and no other process. Without other users each function returns
/// nothing, and every program runs as the user of this process.
class Users {
 public:
  /// Other users need root. Tries to start a program as one of them.
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

}  // namespace leasehold::soak
