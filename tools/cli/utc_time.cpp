#include "tools/cli/utc_time.hpp"

#include <fmt/format.h>
#include <time.h>

namespace leasehold::cli {

Result<std::int64_t> parse_utc_ms(const std::string& text) {
  for (const char* format : {"%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ"}) {
    tm fields{};
    const char* const end = ::strptime(text.c_str(), format, &fields);
    if (end == nullptr || *end != '\0') continue;
    tm normal = fields;
    const time_t seconds = ::timegm(&normal);
    // strptime accepts the 31st of each month.
    if (normal.tm_mday != fields.tm_mday || seconds < 0) continue;
    return std::int64_t{seconds} * 1000;
  }
  return fail(Errc::BadRequest, fmt::format("'{}' is neither a day, as 2026-11-24, nor a time, as "
                                            "2026-11-24T18:30:00Z",
                                            text));
}

}  // namespace leasehold::cli
