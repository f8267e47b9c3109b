#include "tools/cli/table.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>

#include "common/expects.hpp"
#include "common/utf8.hpp"

namespace leasehold::cli {
namespace {

std::vector<std::size_t> column_widths(const Table& table) {
  std::vector<std::size_t> widths;
  for (const Column& column : table.columns) widths.push_back(count_characters(column.title));
  for (const auto& row : table.rows) {
    expects(row.size() == widths.size(), "a row has one cell per column");
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], count_characters(row[i]));
    }
  }
  return widths;
}

std::string padded(std::string_view text, std::size_t width, bool right) {
  const std::string blanks(width - count_characters(text), ' ');
  return right ? blanks + std::string(text) : std::string(text) + blanks;
}

void append_line(std::string& out, const std::string& line) {
  out.append(line, 0, line.find_last_not_of(' ') + 1);
  out += '\n';
}

}  // namespace

Table narrow(const Table& table) {
  Table kept{.columns = {}, .rows = std::vector<std::vector<std::string>>(table.rows.size())};
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].wide) continue;
    kept.columns.push_back(table.columns[i]);
    for (std::size_t row = 0; row < table.rows.size(); ++row)
      kept.rows[row].push_back(table.rows[row].at(i));
  }
  return kept;
}

std::string render(const Table& table) {
  const auto widths = column_widths(table);
  std::string out;
  std::string line;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    line += padded(table.columns[i].title, widths[i], table.columns[i].right) + "  ";
  }
  append_line(out, line);
  for (const auto& row : table.rows) {
    line.clear();
    for (std::size_t i = 0; i < widths.size(); ++i) {
      line += padded(row[i], widths[i], table.columns[i].right) + "  ";
    }
    append_line(out, line);
  }
  return out;
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  std::uint64_t scale = 1;
  while (unit + 1 < kUnits.size() && bytes >= scale * 1024) {
    scale *= 1024;
    ++unit;
  }
  if (bytes % scale == 0) return fmt::format("{} {}", bytes / scale, kUnits[unit]);
  return fmt::format("{:.1f} {}", static_cast<double>(bytes) / static_cast<double>(scale),
                     kUnits[unit]);
}

std::string nanoseconds_text(std::int64_t nanoseconds) {
  if (nanoseconds < 0) return "-";
  if (nanoseconds < 1'000) return fmt::format("{} ns", nanoseconds);
  const auto value = static_cast<double>(nanoseconds);
  if (nanoseconds < 1'000'000) return fmt::format("{:.1f} µs", value / 1e3);
  if (nanoseconds < 1'000'000'000) return fmt::format("{:.1f} ms", value / 1e6);
  return fmt::format("{:.1f} s", value / 1e9);
}

std::string utc_text(std::int64_t unix_s) {
  const time_t seconds = unix_s;
  tm fields{};
  if (::gmtime_r(&seconds, &fields) == nullptr) return "-";
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", fields.tm_year + 1900,
                     fields.tm_mon + 1, fields.tm_mday, fields.tm_hour, fields.tm_min,
                     fields.tm_sec);
}

std::string or_dash(std::string_view text) {
  return std::string(text.empty() ? std::string_view("-") : text);
}

}  // namespace leasehold::cli
