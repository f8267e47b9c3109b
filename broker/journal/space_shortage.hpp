/// Remembers that a write found no space, so that later writes fail at once. Every attempt on a
/// full file system searches for space, which can take 0.1 s.
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
  /// Notes that a write failed for lack of space. `log_moves` is the number of times that the log
  /// was moved completely.
  void begin(const Error& error, std::uint64_t log_moves);
  void end() { error_.reset(); }

  /// Checks whether a write of `size_bytes` can succeed now: because the log was moved since,
  /// because the file system has more free space than at the last check, or because another limit,
  /// such as a quota, allows it. Errors: the error of the failed write.
  Result<void> check(const ReserveFile& reserve, std::uint64_t size_bytes, std::uint64_t log_moves);

  bool has_begun() const { return error_.has_value(); }
  /// How often the file system was queried for space; for tests.
  std::uint64_t queries() const { return queries_; }

 private:
  std::optional<Error> error_;
  std::uint64_t log_moves_ = 0;
  /// Free bytes at the last check, if the file system itself was full.
  std::optional<std::uint64_t> free_bytes_;
  std::uint64_t queries_ = 0;
};

}  // namespace leasehold::journal
