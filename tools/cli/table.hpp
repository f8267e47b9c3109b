/// Aligned tables and readable units. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::cli {

struct Column {
  std::string title;
  bool right = false;  ///< Right-aligned, for numbers.
  bool wide = false;   ///< Shown only in a wide table.
};

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  ///< One cell per column.
};

/// The table without its wide columns.
Table narrow(const Table& table);

/// One line per row, titles first, with two spaces between columns and no trailing spaces.
std::string render(const Table& table);

/// The size in the largest binary unit that fits, with one decimal if needed: "256 MiB", "1.5 KiB".
std::string bytes_text(std::uint64_t bytes);

/// "850 ns", "12.3 µs", "4.1 ms", "2.0 s"; "-" for a negative number, which means unknown.
std::string nanoseconds_text(std::int64_t nanoseconds);

/// "2026-11-24T18:30:00Z"; "-" for a time that has no date.
std::string utc_text(std::int64_t unix_s);

/// The text, or "-" when it is empty.
std::string or_dash(std::string_view text);

}  // namespace leasehold::cli
