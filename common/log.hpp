/// Log set-up for programs. Libraries return errors; mains log, one line per event: a sentence,
/// then logfmt, e.g. `lease revoked lease=17.4 reason=operator`.
#pragma once

#include <string_view>

namespace leasehold {

/// Makes spdlog's default logger write to stderr, with `program` in every line. `level` is one of
/// trace, debug, info, warn, error; any other value means info.
void set_up_log(std::string_view program, std::string_view level);
/// Changes the level of that logger. Any thread.
void set_log_level(std::string_view level);

}  // namespace leasehold
