/// The refusal of a worker that stops.
#pragma once

#include "common/result.hpp"

namespace leasehold {

inline Error worker_stopping() {
  return {.code = Errc::Draining,
          .detail =
              "this worker is stopping; retry under a lease on another worker, or once it has "
              "restarted",
          .scope = FailureScope::Engine};
}

}  // namespace leasehold
