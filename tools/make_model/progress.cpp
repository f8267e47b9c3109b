#include "tools/make_model/progress.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace leasehold::make_model {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
constexpr std::uint64_t kBarWidth = 40;

}  // namespace

ProgressLine::~ProgressLine() {
  if (drawn_) fmt::print(stderr, "\n");
}

void ProgressLine::update(std::uint64_t done_bytes, std::uint64_t total_bytes, TimePoint now) {
  if (!is_terminal_ || now - last_ < (drawn_ ? 100ms : 1000ms)) return;
  const std::uint64_t filled = kBarWidth * done_bytes / total_bytes;
  fmt::print(stderr, "\r[{:#<{}}{:.<{}}] {} of {} MiB", "", filled, "", kBarWidth - filled,
             done_bytes / kMebibyte, total_bytes / kMebibyte);
  std::fflush(stderr);
  last_ = now;
  drawn_ = true;
}

}  // namespace leasehold::make_model
