/// Runs one verb. Calls to the broker go through Dependencies::call, which tests replace.
#pragma once

#include <functional>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "common/clock.hpp"
#include "tools/brokerctl/arguments/arguments.hpp"
#include "tools/cli/screen.hpp"

namespace leasehold::brokerctl {

/// What a verb uses. Threads: the caller's.
struct Dependencies {
  /// Makes one call to the broker. Errors: the broker's refusal, or those of the connection.
  std::function<Result<wire::Json>(std::string_view method, const wire::Json& params)> call;
  /// Makes calls of one method at the same time, and returns their results in the order of
  /// `params`. Empty: `call` makes them one after another.
  std::function<std::vector<Result<wire::Json>>(std::string_view method,
                                                const std::vector<wire::Json>& params)>
      call_all = {};
  /// Waits at most this long. Returns false when the user interrupts.
  std::function<bool(Duration)> wait;
  const Clock* clock = nullptr;
  std::ostream* out = nullptr;
  /// Shows how many leases of a wait have ended. Empty: show nothing.
  std::function<void(std::size_t ended, std::size_t all)> progress = {};
  /// Shows what a wait waits for. Empty: show nothing.
  std::function<void(const std::string&)> progress_text = {};
  /// Called with the exit code of a negative result, such as a failed check. Empty: ignore the
  /// code.
  std::function<void(int)> set_exit_code = {};
  /// Size of the terminal behind `out`. Empty: `out` is not a terminal.
  std::function<cli::ScreenSize()> screen_size = {};
};

/// Runs the verb and writes the result to `out`: a table or lines, or one JSON document
/// (`watch`, `events --follow` and --watch with -o json: one object per line).
/// Errors: those of the call; MalformedMessage for a reply that does not fit; UnknownLease from
/// `revoke` when no lease matches; UnknownTenant from `leases --tenant`; TimedOut, UnknownLease and
/// StillWritable from `revoke --wait`; those of wait.hpp from `drain --wait` and `worker replace`;
/// UnknownLease and StaleGeneration from `timeline`; those of named.hpp from a list with names;
/// those of describe.hpp.
Result<void> run(const Arguments& arguments, const Dependencies& dependencies);

}  // namespace leasehold::brokerctl
