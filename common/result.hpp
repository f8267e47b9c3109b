/// Expected failures as values.
///
/// `Result<T>` is for failures outside our own code: input, files, peers, limits. For broken
/// promises of our own code use `expects()` and `ensures()` (common/expects.hpp).
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>

#include "common/errc.hpp"

namespace leasehold {

/// The code, a sentence with the values and what to do next, and which tenants it concerns.
struct Error {
  Errc code;
  std::string detail;
  FailureScope scope = failure_scope(code);
  std::int64_t retry_after_ms = 0;  ///< A retry before this time has passed fails. 0: not known.

  bool operator==(const Error&) const = default;
};

template <class T>
using Result = std::expected<T, Error>;

/// `return fail(Errc::UnknownTenant, fmt::format("no tenant {}", id));`
inline std::unexpected<Error> fail(Errc code, std::string detail) {
  return std::unexpected(Error{code, std::move(detail)});
}

/// A failed system call: `fail_errno(Errc::SystemError, "memfd_create", errno)`.
std::unexpected<Error> fail_errno(Errc code, std::string_view what, int error_number);

/// A failed call on a named file: FileNotFound, PermissionDenied, DiskFull or SystemError by errno.
std::unexpected<Error> fail_file(std::string_view what, int error_number);

}  // namespace leasehold

/// Unwraps a Result or returns its error to the caller: `Header h = TRY(read_header(file));`
/// Not for coroutines.
#define TRY(expression)                                                       \
  __extension__({                                                             \
    auto&& try_result_ = (expression);                                        \
    if (!try_result_) return std::unexpected(std::move(try_result_).error()); \
    *std::move(try_result_);                                                  \
  })
