/// What one leasehold-tenant process reported on its stdout, understood line by line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.hpp"
#include "common/ids.hpp"

namespace leasehold::demo {

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
  std::string why;     ///< Reason or error code.
  std::string detail;  ///< In words; may be empty.
};

struct TenantRecord {
  std::string name;
  std::vector<TenantEvent> reported;
  std::vector<LeaseId> leases;  ///< In the order they were acquired.
  std::vector<std::int32_t> tokens;
  std::string text;
  std::vector<Revocation> revocations;
  std::optional<std::string> completed;  ///< The reason it ended with.
  std::optional<std::string> failed;     ///< Code and detail.
  bool gone = false;                     ///< Its output has ended.
};

/// One line of JSON. Errors: MalformedMessage, also for a position that is not the next one.
Result<void> note(TenantRecord& record, std::string_view line);

/// Cuts bytes into whole lines.
class LineBuffer {
 public:
  void append(std::string_view bytes) { rest_ += bytes; }
  /// The next whole line without its newline; nothing when there is none.
  std::optional<std::string> next();

 private:
  std::string rest_;
};

}  // namespace leasehold::demo
