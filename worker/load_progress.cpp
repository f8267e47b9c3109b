#include "worker/load_progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace leasehold {
namespace {

constexpr auto kPatience = std::chrono::seconds(1);
constexpr std::uint64_t kBarWidth = 40;

void draw(std::uint64_t done_bytes, std::uint64_t total_bytes) {
  const std::uint64_t filled = done_bytes * kBarWidth / std::max<std::uint64_t>(1, total_bytes);
  fmt::print(stderr, "\rloading weights [{:-<{}}] {:>3} %{}", std::string(filled, '#'), kBarWidth,
             done_bytes * 100 / std::max<std::uint64_t>(1, total_bytes),
             done_bytes == total_bytes ? "\n" : "");
  std::fflush(stderr);
}

}  // namespace

LoadProgress load_progress_on_terminal() {
  if (::isatty(STDERR_FILENO) == 0) return {};
  const auto start = std::chrono::steady_clock::now();
  return [start](std::uint64_t done_bytes, std::uint64_t total_bytes) {
    if (std::chrono::steady_clock::now() - start > kPatience) draw(done_bytes, total_bytes);
  };
}

}  // namespace leasehold
