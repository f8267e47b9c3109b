/// Errors of calls that no worker can serve at the moment. Each error says which tenants are
/// affected.
#pragma once

#include <string>

#include "common/ids.hpp"
#include "common/result.hpp"

namespace leasehold {

Error broker_stopping();
Error worker_draining(const std::string& worker);
/// The worker drains by itself and then exits.
Error worker_stopping(const std::string& worker);
/// The worker `by` replaces the worker.
Error worker_replaced(const std::string& worker, const std::string& by);
/// The worker cannot restore its weights, for the reason `why`.
Error worker_out_of_service(const std::string& worker, const std::string& why);
/// The worker has not resumed yet after a broker restart.
Error worker_reconnecting(const std::string& worker);
Error every_worker_draining();
Error tenant_draining(const TenantId& tenant);

}  // namespace leasehold
