#include "broker/journal/database.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "broker/journal/state_file.hpp"
#include "common/machine/unique_fd.hpp"

namespace leasehold::journal {
namespace {

Errc code_of(int result) {
  switch (result & 0xFF) {
    case SQLITE_FULL:
      return Errc::DiskFull;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Errc::FileCorrupt;
    case SQLITE_NOMEM:
      return Errc::OutOfMemory;
    default:
      return Errc::SystemError;
  }
}

std::unexpected<Error> refuse(sqlite3* handle, int result) {
  // SQLite reports FULL only if the file system has no space. A quota or a file size limit is
  // reported as a failed write, or as a failed resize of the log's shared index.
  const bool is_unwritten = result == SQLITE_IOERR_WRITE || result == SQLITE_IOERR_SHMSIZE;
  const Errc code = is_unwritten ? Errc::DiskFull : code_of(result);
  const std::string what = sqlite3_errmsg(handle);
  if (code == Errc::DiskFull) {
    const char* const path = sqlite3_db_filename(handle, "main");
    return fail(code, fmt::format("the journal cannot grow ({}); make room in {}", what,
                                  path == nullptr || *path == 0
                                      ? "the state directory"
                                      : std::filesystem::path(path).parent_path().string()));
  }
  if (code == Errc::FileCorrupt) {
    return fail(code, fmt::format("the journal is damaged ({})", what));
  }
  return fail(code, fmt::format("journal: {} (SQLite code {})", what, result));
}

}  // namespace

void Statement::destroy(sqlite3_stmt* statement) {
  sqlite3_finalize(statement);
}

void Statement::bind_number(std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), ++bound_, value);
}

void Statement::bind_text(std::string_view value) {
  // STATIC is safe: the caller's arguments outlive the run.
  sqlite3_bind_text64(statement_.get(), ++bound_, value.data(), value.size(), SQLITE_STATIC,
                      SQLITE_UTF8);
}

Result<void> Statement::finish() {
  int result = SQLITE_ROW;
  while (result == SQLITE_ROW) result = sqlite3_step(statement_.get());
  Result<void> outcome;
  if (result != SQLITE_DONE) outcome = refuse(sqlite3_db_handle(statement_.get()), result);
  reset();
  return outcome;
}

Result<bool> Statement::next() {
  column_ = 0;
  const int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  return refuse(sqlite3_db_handle(statement_.get()), result);
}

void Statement::reset() {
  bound_ = 0;
  sqlite3_reset(statement_.get());
}

std::int64_t Statement::next_number() {
  return sqlite3_column_int64(statement_.get(), column_++);
}

std::string Statement::next_text() {
  const int column = column_++;
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return text == nullptr ? std::string() : std::string(text, static_cast<std::size_t>(size));
}

Database::Database(sqlite3* handle) : handle_(handle, &destroy) {
  const auto note = [](void* pages, sqlite3*, const char*, int count) {
    *static_cast<std::uint64_t*>(pages) = static_cast<std::uint64_t>(count);
    return SQLITE_OK;
  };
  // Replaces SQLite's automatic checkpoints, which run inside a commit.
  if (handle != nullptr) sqlite3_wal_hook(handle, note, log_pages_.get());
}

Result<LogMove> Database::checkpoint(CheckpointMode mode) {
  // A connection that never read does not know that there is a log: its checkpoint would succeed
  // and move nothing.
  (void)TRY(number("SELECT count(*) FROM sqlite_schema"));
  const bool truncates = mode == CheckpointMode::Truncate;
  int pages = -1;
  int moved = -1;
  const int result = sqlite3_wal_checkpoint_v2(
      handle_.get(), nullptr, truncates ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE,
      &pages, &moved);
  if (result != SQLITE_OK) return refuse(handle_.get(), result);
  if (pages < 0 || moved < 0) return fail(Errc::SystemError, "journal: SQLite moved no log");
  return LogMove{static_cast<std::uint64_t>(pages), static_cast<std::uint64_t>(moved)};
}

std::string Database::path() const {
  const char* path = sqlite3_db_filename(handle_.get(), "main");
  return path == nullptr ? "" : path;
}

void Database::destroy(sqlite3* handle) {
  sqlite3_close_v2(handle);
}

Result<Database> Database::open(const std::string& path) {
  // Create the file first, because SQLite would apply the umask. SQLite's other files get the same
  // mode.
  const UniqueFd made(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!made) return state_file_error(path, errno);
  sqlite3* handle = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
  const int result = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  Database database(handle);
  if (result != SQLITE_OK) return refuse(handle, result);
  sqlite3_extended_result_codes(handle, 1);
  return database;
}

Result<void> Database::execute(const std::string& sql) {
  const int result = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) return refuse(handle_.get(), result);
  return {};
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int result = sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (result != SQLITE_OK) return refuse(handle_.get(), result);
  return Statement(statement);
}

Result<std::int64_t> Database::number(std::string_view sql) {
  Statement query = TRY(prepare(sql));
  std::int64_t value = 0;
  if (TRY(query.next())) query.read(value);
  return value;
}

}  // namespace leasehold::journal
