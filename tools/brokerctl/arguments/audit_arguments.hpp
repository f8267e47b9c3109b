/// The verbs of `audit`.
#pragma once

#include <string>

#include "tools/brokerctl/arguments/arguments.hpp"

namespace CLI {
class App;
}

namespace leasehold::brokerctl {

/// Lifetime: must outlive the parse, which stores the values in this object.
class AuditArguments {
 public:
  void add_verbs(CLI::App& noun);

  /// Returns the verb after the parse of `audit VERB`. Errors: BadRequest for a malformed name or
  /// time.
  Result<Verb> verb(const std::string& verb) const;

 private:
  ListAudit list_;
  std::string since_, tenant_;
};

/// Converts a day, such as 2026-11-24, or a time, such as 2026-11-24T18:30:00Z, from UTC to Unix
/// milliseconds. Pure. Errors: BadRequest.
Result<std::int64_t> parse_utc_ms(const std::string& text);

}  // namespace leasehold::brokerctl
