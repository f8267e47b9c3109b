/// A wrapper of SQLite with our error codes: an open database and its prepared statements.
///
/// Ownership: statements must not outlive their database. Threads: one.
/// Errors: DiskFull, FileCorrupt (damaged, or not a database), OutOfMemory, SystemError with
/// SQLite's message.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "common/ids.hpp"
#include "common/result.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace leasehold::journal {

class Statement {
 public:
  /// Creates an empty object. Precondition of all other calls: a prepared statement was moved in.
  Statement() = default;

  /// Binds the value of the next parameter. A text must outlive the run or the query.
  void bind(const std::string& value) { bind_text(value); }
  void bind(std::string_view value) { bind_text(value); }
  void bind(const char* value) { bind_text(value); }
  template <class Number>
    requires std::integral<Number> || std::is_enum_v<Number>
  void bind(Number value) {
    bind_number(static_cast<std::int64_t>(value));
  }
  template <class Tag>
  void bind(StrongId<Tag> id) {
    bind_number(static_cast<std::int64_t>(id.value));
  }
  template <class Tag>
  void bind(const StrongName<Tag>& name) {
    bind_text(name.value);
  }

  /// Binds the values in order, runs the statement to its end and resets it.
  template <class... Values>
  Result<void> run(const Values&... values) {
    (bind(values), ...);
    return finish();
  }

  /// Moves to the next row of a query; false at its end.
  Result<bool> next();

  /// Binds the values and moves to the first row; false if there is none.
  template <class... Values>
  Result<bool> query(const Values&... values) {
    reset();
    (bind(values), ...);
    return next();
  }
  /// Ends a query that may have more rows. An open query keeps checkpoints from moving the whole
  /// log.
  void reset();

  /// Reads the next columns of the current row, from the left.
  template <class... Values>
  void read(Values&... values) {
    (read_column(values), ...);
  }

 private:
  friend class Database;
  explicit Statement(sqlite3_stmt* statement) : statement_(statement, &destroy) {}
  static void destroy(sqlite3_stmt* statement);

  void bind_number(std::int64_t value);
  void bind_text(std::string_view value);
  Result<void> finish();
  template <class Value>
  void read_column(Value& value);
  std::int64_t next_number();
  std::string next_text();

  std::unique_ptr<sqlite3_stmt, void (*)(sqlite3_stmt*)> statement_{nullptr, &destroy};
  int bound_ = 0;
  int column_ = 0;
};

template <class Value>
void Statement::read_column(Value& value) {
  if constexpr (std::same_as<Value, std::string>) {
    value = next_text();
  } else if constexpr (requires { Value{}.value; }) {
    read_column(value.value);
  } else {
    value = static_cast<Value>(next_number());
  }
}

enum class CheckpointMode {
  Passive,   ///< Does not wait for writers. Pages that are written meanwhile stay in the log.
  Truncate,  ///< Also truncates the log's file to zero bytes; needs to be the only connection.
};

/// The result of a checkpoint: the length of the log and the part that was moved, in pages.
struct LogMove {
  std::uint64_t pages = 0;
  std::uint64_t moved = 0;
  /// If true, the next transaction overwrites the log from its beginning.
  bool is_complete() const { return moved == pages; }
};

class Database {
 public:
  /// Opens the file or creates it with mode 0600.
  static Result<Database> open(const std::string& path);

  /// Runs any number of statements, for schemas and pragmas.
  Result<void> execute(const std::string& sql);
  Result<Statement> prepare(std::string_view sql);
  /// Moves as much of the log into the database as possible. A failure loses no data; the log then
  /// grows.
  Result<LogMove> checkpoint(CheckpointMode mode);
  /// Length of the log in pages after the last commit of this connection.
  std::uint64_t log_pages() const { return *log_pages_; }

  /// Path of the database file.
  std::string path() const;

  /// The number that a query returns; 0 if it returns no row.
  Result<std::int64_t> number(std::string_view sql);

 private:
  explicit Database(sqlite3* handle);
  static void destroy(sqlite3* handle);

  std::unique_ptr<std::uint64_t> log_pages_ = std::make_unique<std::uint64_t>(0);
  std::unique_ptr<sqlite3, void (*)(sqlite3*)> handle_;
};

}  // namespace leasehold::journal
