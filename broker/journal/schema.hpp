/// The tables of the journal and how older ones become today's.
#pragma once

#include "broker/journal/database.hpp"

namespace leasehold::journal {

/// Steps of `PRAGMA user_version`; a file of an older version is brought up to this one at opening.
inline constexpr std::int64_t kSchemaVersion = 7;

/// Makes the tables, or migrates them, in one transaction.
/// Errors: FileCorrupt for a database that is not a journal, is damaged, or was written by a newer
/// broker; those of Database.
Result<void> prepare_schema(Database& database);

}  // namespace leasehold::journal
