/// Aligned tables and units for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::cli {

struct Column {
  std::string title;
  bool right = false;  ///< Numbers stand right.
};

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  ///< Each as long as `columns`.
};

/// One line per row, titles first, columns two spaces apart, no trailing blanks.
std::string render(const Table& table);

/// Places on a terminal, counting every character of UTF-8 text as one.
std::size_t display_width(std::string_view text);

/// The largest binary unit that divides it exactly or keeps one decimal: "256 MiB", "1.5 KiB".
std::string bytes_text(std::uint64_t bytes);

/// "850 ns", "12.3 µs", "4.1 ms", "2.0 s"; "-" for a negative number, which means unknown.
std::string nanoseconds_text(std::int64_t nanoseconds);

/// The text, or "-" when there is none.
std::string or_dash(std::string_view text);

}  // namespace leasehold::cli
