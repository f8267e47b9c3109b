/// Parses what one leasehold-tenant process prints with -o json, line by line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.hpp"
#include "common/ids.hpp"
#include "common/machine/unique_fd.hpp"

namespace leasehold::runner {

struct Revocation {
  LeaseId lease;
  std::string reason;  ///< "operator" …
  std::uint32_t after_tokens = 0;
};

/// One line that is not a token.
struct TenantEvent {
  std::string event;  ///< "acquired", "submitted", "revoked", "retry", "completed" …
  TimePoint at;
  std::optional<LeaseId> lease;
  std::string why;     ///< Reason, error code or mode of a rebind.
  std::string detail;  ///< For people; may be empty.
  /// The worker's arithmetic, after a rebind to a worker with another one.
  std::string other_arithmetic = {};
  std::string scope = {};  ///< Scope of an end or error: "tenant", "engine" or "shared".
};

struct TenantRecord {
  std::string name;
  std::vector<TenantEvent> reported;
  std::vector<LeaseId> leases;  ///< In the order they were acquired.
  std::vector<std::int32_t> tokens;
  std::vector<TimePoint> token_times;  ///< When the tenant received each token.
  std::string text;
  std::vector<Revocation> revocations;
  std::optional<std::string> completed;  ///< The reason of the completion.
  std::optional<std::string> failed;     ///< Code and detail of the error.
  bool gone = false;                     ///< The output of the process has ended.
};

/// Adds one line of JSON. Errors: MalformedMessage, also for a position that is not the next one.
Result<void> note(TenantRecord& record, std::string_view line);

/// Splits a byte stream into lines.
class LineBuffer {
 public:
  void append(std::string_view bytes) { rest_ += bytes; }
  /// The next complete line without its newline; nothing if no line is complete.
  std::optional<std::string> next();

 private:
  std::string rest_;
};

/// Appends what can be read from the non-blocking `fd` now. True at the end of the output.
/// Errors: SystemError.
Result<bool> read_output(const UniqueFd& fd, std::string& output);

/// Adds every complete line that can be read from the non-blocking `output` now. True at the end of
/// the output. Errors: MalformedMessage, SystemError.
Result<bool> read_available(const UniqueFd& output, LineBuffer& lines, TenantRecord& record);

}  // namespace leasehold::runner
