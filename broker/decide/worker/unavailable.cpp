#include "broker/decide/worker/unavailable.hpp"

#include <fmt/format.h>

namespace leasehold {

Error broker_stopping() {
  return {Errc::Draining, "the broker is stopping; retry after it has restarted",
          FailureScope::Engine};
}

Error worker_draining(const std::string& worker) {
  return {Errc::Draining,
          fmt::format("worker {} is draining; name another, or retry when it serves again", worker),
          FailureScope::Engine};
}

Error worker_stopping(const std::string& worker) {
  return {
      Errc::Draining,
      fmt::format("worker {} is stopping; name another, or retry after it has restarted", worker),
      FailureScope::Engine};
}

Error worker_replaced(const std::string& worker, const std::string& by) {
  return {Errc::Draining,
          fmt::format("worker {} is replaced by worker {}; name that one", worker, by),
          FailureScope::Engine};
}

Error worker_out_of_service(const std::string& worker, const std::string& why) {
  return {Errc::MissingWeight,
          fmt::format("worker {} is out of service until its weights are back ({}); use another "
                      "worker meanwhile",
                      worker, why),
          FailureScope::Engine};
}

Error worker_reconnecting(const std::string& worker) {
  return {Errc::BrokerLost,
          fmt::format("worker {} is reconnecting after a broker restart; retry", worker),
          FailureScope::Engine};
}

Error every_worker_draining() {
  return {Errc::Draining,
          "every ready worker is draining; retry when one serves again or another is ready",
          FailureScope::Engine};
}

Error tenant_draining(const TenantId& tenant) {
  return {Errc::Draining,
          fmt::format("tenant {} is draining and gets no lease until an operator ends that; retry "
                      "later",
                      tenant.value),
          FailureScope::Tenant};
}

}  // namespace leasehold
