/// Reports each revocation that the engine observes: to the tenant whose request it ended, to the
/// broker, and to the metrics.
///
/// Threads: the functions of RevocationObserver from any gate thread, after `set_server`, which
/// precedes the engine's first step. Lifetime: link, descriptor, server and metrics outlive the
/// engine's last step.
#pragma once

#include "worker/engine/step_refusals.hpp"
#include "worker/lease/broker_link.hpp"
#include "worker/serve/tenant_server.hpp"

namespace leasehold {

class RevocationReporter final : public RevocationObserver {
 public:
  /// `wakeup_fd` is the broker's eventfd, borrowed.
  RevocationReporter(BrokerLink& broker, int wakeup_fd, RequestMetrics& metrics)
      : broker_(&broker), wakeup_fd_(wakeup_fd), metrics_(&metrics) {}

  /// Sets the server of the tenants. The server needs the engine, which needs this observer.
  void set_server(TenantServer& server) { server_ = &server; }

  void completed_early(const Completed& completed, const events::ForwardRevoked& what,
                       TimePoint at) noexcept override;
  void lease_found_revoked(const events::ForwardRevoked& what, TimePoint at) noexcept override;
  void refusing_unit_ended() noexcept override;

 private:
  BrokerLink* broker_;
  int wakeup_fd_;
  RequestMetrics* metrics_;
  TenantServer* server_ = nullptr;
};

}  // namespace leasehold
