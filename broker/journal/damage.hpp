/// Finds damaged files of the journal before rows are read from them. Threads: one.
#pragma once

#include <fmt/format.h>

#include <string>

#include "broker/journal/database.hpp"

namespace leasehold::journal {

/// Checks the tables that a start loads, and with sqlite_schema the free pages, which a write may
/// reuse. The audit records may be a million, which a start must not read; their hash chain shows
/// damage to a reader. Errors: FileCorrupt; those of Database.
Result<void> check_integrity(Database& database);

/// Rejects a log whose database file is empty or missing, because SQLite would delete the log.
/// Errors: FileCorrupt.
Result<void> check_log_has_database(const std::string& path);

/// Adds to a FileCorrupt error which files the operator can move away to start without them.
template <class T>
Result<T> naming_files(const std::string& path, Result<T> result) {
  if (result || result.error().code != Errc::FileCorrupt) return result;
  return fail(Errc::FileCorrupt,
              fmt::format("{}; to start without it, move {}, and its -wal and -shm files, to "
                          "another directory",
                          result.error().detail, path));
}

}  // namespace leasehold::journal
