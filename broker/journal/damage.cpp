#include "broker/journal/damage.hpp"

#include <filesystem>
#include <system_error>

namespace leasehold::journal {

Result<void> check_integrity(Database& database) {
  Statement tables = TRY(database.prepare(
      "SELECT 'sqlite_schema' UNION ALL "
      "SELECT name FROM sqlite_schema WHERE type='table' AND name<>'audit_record'"));
  while (TRY(tables.next())) {
    std::string table;
    tables.read(table);
    Statement check = TRY(database.prepare(fmt::format("PRAGMA quick_check({})", table)));
    std::string verdict;
    if (TRY(check.next())) check.read(verdict);
    if (verdict == "ok") continue;
    return fail(Errc::FileCorrupt, fmt::format("the journal's {} is damaged ({})", table, verdict));
  }
  return {};
}

Result<void> check_log_has_database(const std::string& path) {
  std::error_code missing;
  const auto size_bytes = std::filesystem::file_size(path, missing);
  if (!missing && size_bytes != 0) return {};
  const std::string log = path + "-wal";
  const auto log_bytes = std::filesystem::file_size(log, missing);
  if (missing || log_bytes == 0) return {};
  return fail(
      Errc::FileCorrupt,
      fmt::format(
          "{} is empty or missing, but it has a log of {} bytes; restore the file, or move {} "
          "away too to start without them",
          path, log_bytes, log));
}

}  // namespace leasehold::journal
