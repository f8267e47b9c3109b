/// Checks of a record, and how reports show them. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/checks/runner/record.hpp"

namespace leasehold::runner {

struct Check {
  std::string promise;
  bool ok = false;
  std::string seen;  ///< The observed values that decide the check.
};

/// False without checks.
bool all_ok(const std::vector<Check>& checks);

/// "ok      PROMISE (SEEN)" or "FAILED  PROMISE (SEEN)", with a newline.
std::string check_line(bool ok, std::string_view promise, std::string_view seen);
/// [{"promise", "ok", "seen"}]
wire::Json checks_json(const std::vector<Check>& checks);

/// Counts the samples of one check and keeps its first violation. A check without samples fails,
/// because it proves nothing.
class Finding {
 public:
  /// `unit`: plural noun for the samples.
  Finding(std::string promise, std::string unit)
      : promise_(std::move(promise)), unit_(std::move(unit)) {}

  void checked(std::uint64_t count = 1) { checked_ += count; }
  void wrong(std::string what);
  /// Counts one sample; it is wrong unless `error` is empty.
  void sample(std::string error);
  /// Fails with fewer than `at_least` samples.
  Check check(std::uint64_t at_least = 1) const;

 private:
  std::string promise_, unit_, first_;
  std::uint64_t checked_ = 0, wrong_ = 0;
};

/// Passes if something happened: at least one sample.
Check happened(std::string promise, std::string unit, std::uint64_t times);
/// Passes if every count is greater than 0.
Check all_happened(std::string promise, const NamedCounts& counts);

/// Describes how a text differs from the undisturbed one. Empty if they are equal, or if the text
/// is not completed and is the beginning of the undisturbed one.
std::string text_error(const Text& text);

/// Returns the first pool whose bytes in all states do not add up to its capacity: "KV: 8 of 16
/// bytes"; empty if there is none.
std::string not_conserved(const wire::StatusView& status);
/// True if all memory of both pools is free, or is device memory that is cleared and held until its
/// worker exits.
bool is_all_free(const wire::StatusView& status);

/// The bytes of both pools add up to their capacities in every sample.
Check conserved(const Record& record);
/// All memory is free in the record's last status.
Check all_free(const Record& record);

/// Checks the promises that must hold under every kill, stop and revocation.
std::vector<Check> judge(const Record& record);

}  // namespace leasehold::runner
