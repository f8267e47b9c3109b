/// Does what one verb asks, over a call that may be a socket or a test's fake.
#pragma once

#include <functional>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "common/clock.hpp"
#include "tools/brokerctl/arguments.hpp"

namespace leasehold::brokerctl {

/// What a verb can reach. Threads: all of it on the caller's.
struct Dependencies {
  /// One call to the broker; errors are the broker's own or those of the connection.
  std::function<Result<wire::Json>(std::string_view method, const wire::Json& params)> call;
  /// Waits so long, or shorter: false when the user asked to stop.
  std::function<bool(Duration)> wait;
  const Clock* clock = nullptr;
  std::ostream* out = nullptr;
};

/// Runs the verb and writes its answer to `out`: a table or lines, or one JSON document
/// (`watch` and `events --follow` with -o json: one object per line).
/// Errors: those of the call; MalformedMessage for an answer that does not fit; TimedOut and
/// UnknownLease from `revoke --wait`; UnknownLease and StaleGeneration from `timeline`.
Result<void> run(const Arguments& arguments, const Dependencies& dependencies);

}  // namespace leasehold::brokerctl
