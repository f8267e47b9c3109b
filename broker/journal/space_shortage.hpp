/// Remembers that a write found no space, so that the writes after it fail without work for the
/// disk: a full file system searches for space at every attempt, which can take 0.1 s each.
///
/// Threads: one.
#pragma once

#include <cstdint>
#include <optional>

#include "broker/journal/reserve_file.hpp"
#include "common/result.hpp"

namespace leasehold::journal {

class SpaceShortage {
 public:
  /// A write failed so. `log_moves` is the number of times that the log was moved completely.
  void begin(const Error& error, std::uint64_t log_moves);
  void end() { error_.reset(); }

  /// The error of the failed write, while nothing shows that one of `size_bytes` can succeed: the
  /// log was moved, the file system has more free space than at the last look, or another limit,
  /// such as a quota, allows it. Errors: those of the failed write.
  Result<void> check(const ReserveFile& reserve, std::uint64_t size_bytes, std::uint64_t log_moves);

  bool has_begun() const { return error_.has_value(); }
  /// How often the file system was asked for space, for tests.
  std::uint64_t looks() const { return looks_; }

 private:
  std::optional<Error> error_;
  std::uint64_t log_moves_ = 0;
  /// At the last look, if the file system itself was full.
  std::optional<std::uint64_t> free_bytes_;
  std::uint64_t looks_ = 0;
};

}  // namespace leasehold::journal
