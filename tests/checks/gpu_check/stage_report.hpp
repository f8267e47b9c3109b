/// The report of one stage: lines for people and numbers for programs, in one file.
///
/// A stage rewrites its file with every line, so the file is complete up to the time when the stage
/// is killed. Threads: one. Errors: only `finish` returns the error of a file that cannot be
/// written.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "tests/checks/bench/limits.hpp"

namespace leasehold::gpu_check {

using Json = nlohmann::json;

/// Pass and Fail judge promises, Reached and Missed judge speed. Unknown: the machine does not
/// allow the check, or the check did not run.
enum class Verdict : std::uint8_t { Pass, Fail, Reached, Missed, Measured, Unknown };

std::string_view name(Verdict verdict);

struct ReportEntry {
  std::string what;
  std::string measured;
  std::string target;  ///< Empty: none.
  Verdict verdict = Verdict::Measured;
  bool as_threads = false;  ///< The check ran as threads of one process instead of processes.
};

/// A measured value and the limit that it must keep, both in this unit.
struct Target {
  bench::Limit limit;
  double value = 0;
  std::string_view unit;
  std::string_view statistic = "";  ///< "p99 "
};

/// A row of the measurement table: reached or missed with a target, otherwise only measured.
ReportEntry judged(std::string what, std::string measured, const std::optional<Target>& target);

/// "  right   vmm: import by another process      yes            (as threads of one process)"
std::string text_of(const ReportEntry& line);

Json to_json(const ReportEntry& line);
/// nullopt for JSON that is not an entry.
std::optional<ReportEntry> entry_from(const Json& json);

class StageReport {
 public:
  StageReport(std::string stage, std::string path)
      : stage_(std::move(stage)), path_(std::move(path)) {}

  void add(ReportEntry line);
  /// Adds a row, and its numbers to the list of this name.
  void add_row(const char* list, Json numbers, ReportEntry row) {
    numbers_[list].push_back(std::move(numbers));
    add(std::move(row));
  }
  /// Adds a promise, which fails unless `holds`.
  void require(std::string what, bool holds, std::string measured = {});
  /// Adds a value without a target.
  void measured(std::string what, std::string value);
  /// Adds a check that could not run, and the reason.
  void unknown(std::string what, std::string why);
  /// Adds a feature that the machine may lack; unknown if `tried` failed.
  template <class T>
  void supported(std::string what, const Result<T>& tried) {
    if (tried) return require(std::move(what), true);
    unknown(std::move(what), tried.error().detail);
  }
  /// Adds a check that ended with an error.
  void failed(std::string what, const Error& error);

  Json& numbers() { return numbers_; }
  bool all_right() const;

  Result<void> finish();

 private:
  Result<void> write(bool finished) const;

  std::string stage_;
  std::string path_;
  std::vector<ReportEntry> lines_;
  Json numbers_ = Json::object();
};

/// Replaces the file. Errors: those of replace_file.
Result<void> write_report(const std::string& path, const Json& report);

}  // namespace leasehold::gpu_check
