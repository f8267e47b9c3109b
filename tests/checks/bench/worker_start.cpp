#include "tests/checks/bench/recover_bench.hpp"

#include <fmt/format.h>
#include <time.h>

#include <charconv>
#include <string>

namespace leasehold::bench {
namespace {

/// Parses a time like "2026-11-24T02:45:01.123456" at the start of the line.
Result<std::int64_t> time_us_of(std::string_view line) {
  constexpr std::size_t kSeconds = 19;
  constexpr std::size_t kDigits = 6;
  const std::string text(line.substr(0, kSeconds));
  ::tm local{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &local);
  const bool has_fraction = line.size() > kSeconds + kDigits && line[kSeconds] == '.';
  std::int64_t fraction = -1;
  if (has_fraction) {
    const char* digits = line.data() + kSeconds + 1;
    std::from_chars(digits, digits + kDigits, fraction);
  }
  if (end == nullptr || *end != '\0' || fraction < 0)
    return fail(Errc::BadRequest, fmt::format("\"{}\" does not begin with a time", line));
  local.tm_isdst = -1;
  return static_cast<std::int64_t>(::mktime(&local)) * 1'000'000 + fraction;
}

std::string_view line_at(std::string_view log, std::size_t at) {
  const std::size_t newline = log.rfind('\n', at);
  const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
  return log.substr(begin, log.find('\n', at) - begin);
}

}  // namespace

Result<StartTimes> last_start(std::string_view log) {
  StartTimes times{};
  std::size_t at = log.rfind(kStartStages.front().words);
  for (std::size_t i = 0; i < kStartStages.size(); ++i) {
    if (at != std::string_view::npos) at = log.find(kStartStages[i].words, at);
    if (at == std::string_view::npos)
      return fail(Errc::BadRequest,
                  fmt::format("the worker's log has no line with \"{}\"", kStartStages[i].words));
    times[i] = TRY(time_us_of(line_at(log, at)));
  }
  return times;
}

}  // namespace leasehold::bench
