#include "tests/checks/demo/display.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "common/cli/print_error.hpp"
#include "common/utf8.hpp"

namespace leasehold::demo {
namespace {

constexpr std::size_t kColumnHeight = 12;
constexpr std::string_view kBetween = " │ ";

std::string fit(std::string text, std::size_t width) {
  while (count_characters(text) > width) {
    text.pop_back();
    // Do not cut a UTF-8 character in two.
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0xC0) {
      text.pop_back();
    }
  }
  return text + std::string(width - count_characters(text), ' ');
}

std::string_view state(const runner::TenantRecord& record) {
  if (record.failed) return "failed";
  if (record.completed) return "done";
  if (record.gone) return "gone";
  if (record.leases.empty()) return "waiting";
  return record.revocations.size() < record.leases.size() ? "streaming" : "rebinding";
}

std::string heading(const runner::TenantRecord& record) {
  const std::string lease = record.leases.empty() ? "-" : to_string(record.leases.back());
  return fmt::format("{} lease {} {} {}", record.name, lease, record.tokens.size(), state(record));
}

}  // namespace

std::vector<std::string> wrap(std::string_view text, std::size_t width, std::size_t height) {
  std::vector<std::string> lines(1);
  const std::string clean = printable(text);
  std::size_t at = 0;
  while (at < clean.size()) {
    const std::size_t end = std::min(clean.find(' ', at), clean.size());
    const std::string word = clean.substr(at, end - at);
    at = end + 1;
    const bool first = lines.back().empty();
    const std::size_t needs = count_characters(lines.back()) + count_characters(word) + 1;
    if (first || needs > width) {
      if (!first) lines.emplace_back();
      lines.back() = word;
    } else {
      lines.back() += " " + word;
    }
  }
  if (lines.size() > height) lines.erase(lines.begin(), lines.end() - static_cast<long>(height));
  return lines;
}

std::vector<std::string> columns(const Records& records, std::size_t width, std::size_t height) {
  const std::size_t gaps = (records.size() - 1) * count_characters(kBetween);
  const std::size_t each = std::max<std::size_t>((width - gaps) / records.size(), 8);
  std::vector<std::string> lines(height + 1);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto text = wrap(records[i].text, each, height);
    for (std::size_t row = 0; row < lines.size(); ++row) {
      const std::string cell = row == 0                ? heading(records[i])
                               : row - 1 < text.size() ? text[row - 1]
                                                       : "";
      if (i > 0) lines[row] += kBetween;
      lines[row] += fit(cell, each);
    }
  }
  return lines;
}

void ColumnDisplay::show(const Records& records) {
  if (lines_drawn_ > 0) out_ << fmt::format("\x1b[{}A", lines_drawn_);
  const auto lines = columns(records, width_, kColumnHeight);
  for (const std::string& line : lines) out_ << '\r' << line << "\x1b[K\n";
  out_ << std::flush;
  lines_drawn_ = lines.size();
}

void PlainDisplay::advance(const Records& records, std::size_t at_least) {
  for (const runner::TenantRecord& record : records) {
    Shown& shown = shown_[record.name];
    const bool news =
        record.leases.size() > shown.leases || record.revocations.size() > shown.revocations;
    show_text(record, shown, news ? 1 : at_least);
    for (; shown.revocations < record.revocations.size(); ++shown.revocations) {
      const runner::Revocation& revocation = record.revocations[shown.revocations];
      out_ << fmt::format("{} | -- lease {} revoked ({}) after {} tokens\n", record.name,
                          to_string(revocation.lease), printable(revocation.reason),
                          revocation.after_tokens);
    }
    for (; shown.leases < record.leases.size(); ++shown.leases) {
      out_ << fmt::format("{} | -- lease {} acquired\n", record.name,
                          to_string(record.leases[shown.leases]));
    }
  }
  out_ << std::flush;
}

void PlainDisplay::show_text(const runner::TenantRecord& record, Shown& shown,
                             std::size_t at_least) {
  if (record.text.size() - shown.text < at_least) return;
  out_ << record.name << " | " << printable(std::string_view(record.text).substr(shown.text))
       << '\n';
  shown.text = record.text.size();
}

}  // namespace leasehold::demo
