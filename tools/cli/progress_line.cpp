#include "tools/cli/progress_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

namespace leasehold::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kBarWidth = 40;

}  // namespace

ProgressLine::~ProgressLine() {
  if (drawn_) std::cerr << '\n';
}

bool ProgressLine::is_due(TimePoint now) {
  if (!is_terminal_ || now - last_ < (drawn_ ? 100ms : 1000ms)) return false;
  last_ = now;
  return drawn_ = true;
}

void ProgressLine::update(std::string_view text, TimePoint now) {
  if (!is_due(now)) return;
  std::cerr << fmt::format("\r{:<{}}", text, width_);
  width_ = text.size();
}

void ProgressLine::update(std::uint64_t done, std::uint64_t total, TimePoint now) {
  if (!is_due(now)) return;
  total = std::max<std::uint64_t>(total, 1);
  const std::uint64_t filled = kBarWidth * done / total;
  std::cerr << fmt::format("\r[{:#<{}}{:.<{}}] {:>3} %", "", filled, "", kBarWidth - filled,
                           100 * done / total);
}

}  // namespace leasehold::cli
