/// The files that a check writes with --out DIR: one report as NAME.json, NAME.txt and so on.
///
/// Threads: one at a time.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/checks/report/report_file.hpp"

namespace leasehold {

class ReportDirectory {
 public:
  /// Creates the directory, but not its parents, and opens one file per suffix before the work
  /// starts. An empty path opens nothing, and `write` then does nothing.
  /// Errors: those of ReportFile::open.
  static Result<ReportDirectory> open(const std::string& path, const std::string& name,
                                      const std::vector<std::string>& suffixes);

  /// Precondition: the suffix was opened. Errors: those of ReportFile::write.
  Result<void> write(std::string_view suffix, std::string_view text) const;

 private:
  std::vector<std::pair<std::string, ReportFile>> files_;  ///< Pairs of suffix and file.
};

}  // namespace leasehold
