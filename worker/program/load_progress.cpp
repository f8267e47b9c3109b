#include "worker/program/load_progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/log.hpp"

namespace leasehold {
namespace {

constexpr auto kShowAfter = std::chrono::seconds(1);
constexpr std::uint64_t kBarWidth = 40;
constexpr std::uint64_t kNeverDrawn = ~std::uint64_t{0};

void draw(std::uint64_t percent) {
  const std::uint64_t filled = percent * kBarWidth / 100;
  (void)write_beside_log(fmt::format("\rloading weights [{:-<{}}] {:>3} %{}",
                                     std::string(filled, '#'), kBarWidth, percent,
                                     percent == 100 ? "\n" : ""));
}

}  // namespace

LoadProgress load_progress_on_terminal() {
  if (::isatty(STDERR_FILENO) == 0) return {};
  const auto start = std::chrono::steady_clock::now();
  return [start, drawn = kNeverDrawn](std::uint64_t done_bytes, std::uint64_t total_bytes) mutable {
    const std::uint64_t percent = done_bytes * 100 / std::max<std::uint64_t>(1, total_bytes);
    const bool is_slow = std::chrono::steady_clock::now() - start > kShowAfter;
    if (is_slow && percent != std::exchange(drawn, percent)) draw(percent);
  };
}

}  // namespace leasehold
