/// What a stage found, as it finds it: lines for people, numbers for programs, one file.
///
/// A stage is a process of its own. It writes the whole file anew with every line, so whoever ends
/// it too early still has what it knew by then.
/// Threads: one. Errors: a file that cannot be written is told once, by `finish`.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace leasehold::gpu_check {

using Json = nlohmann::json;

/// Pass and Fail are about promises, Reached and Missed about speed. Unknown: the card or the
/// machine does not allow it, or it was not got to.
enum class Verdict : std::uint8_t { Pass, Fail, Reached, Missed, Measured, Unknown };

std::string_view name(Verdict verdict);
std::optional<Verdict> verdict_from_name(std::string_view text);

struct ReportEntry {
  std::string what;
  std::string measured;
  std::string target;  ///< Empty: none.
  Verdict verdict = Verdict::Measured;
  bool as_threads = false;  ///< What is meant for processes ran as threads of one.

  bool operator==(const ReportEntry&) const = default;
};

/// "  right   vmm: import by another process      yes            (as threads of one process)"
std::string text_of(const ReportEntry& line);

Json to_json(const ReportEntry& line);
/// Nothing for what is no line.
std::optional<ReportEntry> entry_from(const Json& json);

class StageReport {
 public:
  StageReport(std::string stage, std::string path)
      : stage_(std::move(stage)), path_(std::move(path)) {}

  void add(ReportEntry line);
  /// A yes that has to be one.
  void require(std::string what, bool holds, std::string measured = {});
  /// What could not be found out, and why.
  void unknown(std::string what, std::string why);
  /// Something that went wrong instead of an answer.
  void failed(std::string what, const Error& error);

  Json& numbers() { return numbers_; }
  const std::vector<ReportEntry>& lines() const { return lines_; }
  bool all_right() const;

  Result<void> finish();

 private:
  Result<void> write(bool finished) const;

  std::string stage_;
  std::string path_;
  std::vector<ReportEntry> lines_;
  Json numbers_ = Json::object();
};

/// The file appears whole or not at all. Errors: SystemError.
Result<void> replace_file(const std::string& path, const std::string& text);

}  // namespace leasehold::gpu_check
