/// The tables of the journal. They are created, written and read from one description of each row
/// (row_columns.hpp).
#pragma once

#include <memory>

#include "broker/books/rows.hpp"
#include "broker/journal/audit_log.hpp"
#include "broker/journal/database.hpp"

namespace leasehold::journal {

/// Value of `PRAGMA user_version`. Every change of a table needs a new version; a broker refuses a
/// file with another version.
inline constexpr std::int64_t kSchemaVersion = 24;

/// Creates the tables of a new file in one transaction. Errors: FileCorrupt for a database that is
/// not a journal, is damaged, or has another version; those of Database.
Result<void> prepare_schema(Database& database);

/// Reads all rows. The file is untrusted input, so every value is checked. Errors: FileCorrupt
/// naming the row whose value is out of range; those of Database.
Result<Image> load_image(Database& database);

/// Writes rows with prepared statements. Lifetime: the database and the audit log outlive this
/// object. Threads: one.
class Tables {
 public:
  /// Errors: those of Database, for a table with the wrong columns.
  static Result<Tables> open(Database& database, AuditLog& audit);
  ~Tables();
  Tables(Tables&&) noexcept;

  /// Runs inside the caller's transaction. Errors: those of Database.
  Result<void> write(const Row& row);

 private:
  struct Statements;
  explicit Tables(std::unique_ptr<Statements> statements);

  std::unique_ptr<Statements> statements_;
};

}  // namespace leasehold::journal
