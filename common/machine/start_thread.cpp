#include "common/machine/start_thread.hpp"

#include <fmt/format.h>

namespace leasehold {

Error thread_refused(std::string_view what, const std::system_error& refused,
                     std::string_view other_remedy) {
  return {Errc::SystemError,
          fmt::format("cannot start {}: {}; raise pids.max of the control group (TasksMax= in a "
                      "unit) or the user's limit of processes (RLIMIT_NPROC, ulimit -u){}{}",
                      what, refused.code().message(), other_remedy.empty() ? "" : ", or ",
                      other_remedy)};
}

}  // namespace leasehold
