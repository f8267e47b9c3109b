/// Shows the streams side by side on a terminal, or line by line in a log.
#pragma once

#include <iosfwd>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/checks/runner/tenant_record.hpp"

namespace leasehold::demo {

using Records = std::vector<runner::TenantRecord>;

/// The last `height` lines of `text`, wrapped at words to `width` columns. Pure.
std::vector<std::string> wrap(std::string_view text, std::size_t width, std::size_t height);

/// Returns the lines of one frame, `width` characters wide: a column per tenant with its heading
/// and text. Pure.
std::vector<std::string> columns(const Records& records, std::size_t width, std::size_t height);

/// Shows the changes since the last call. Threads: one.
class Display {
 public:
  virtual ~Display() = default;
  virtual void show(const Records& records) = 0;
  /// The last call.
  virtual void finish(const Records& records) = 0;
};

/// Redraws columns in place with ANSI sequences.
class ColumnDisplay final : public Display {
 public:
  ColumnDisplay(std::ostream& out, std::size_t width) : out_(out), width_(width) {}
  void show(const Records& records) override;
  void finish(const Records& records) override { show(records); }

 private:
  std::ostream& out_;
  std::size_t width_;
  std::size_t lines_drawn_ = 0;
};

/// Prints a line for every 60 characters of a tenant, after its name.
class PlainDisplay final : public Display {
 public:
  explicit PlainDisplay(std::ostream& out) : out_(out) {}
  void show(const Records& records) override { advance(records, 60); }
  void finish(const Records& records) override { advance(records, 1); }

 private:
  struct Shown {
    std::size_t text = 0, leases = 0, revocations = 0;
  };
  void advance(const Records& records, std::size_t at_least);
  void show_text(const runner::TenantRecord& record, Shown& shown, std::size_t at_least);

  std::ostream& out_;
  std::map<std::string, Shown> shown_;
};

}  // namespace leasehold::demo
