/// The tables of the journal, and the migration of older files.
#pragma once

#include "broker/journal/database.hpp"

namespace leasehold::journal {

/// Value of `PRAGMA user_version`. A file of an older version is migrated when it is opened.
inline constexpr std::int64_t kSchemaVersion = 17;

/// Creates or migrates the tables in one transaction.
/// Errors: FileCorrupt for a database that is not a journal, is damaged, or was written by a newer
/// broker; those of Database.
Result<void> prepare_schema(Database& database);

}  // namespace leasehold::journal
