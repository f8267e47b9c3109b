/// Errors of calls that nothing serves at the moment. Each says which tenants it concerns.
#pragma once

#include <string>

#include "common/ids.hpp"
#include "common/result.hpp"

namespace leasehold {

Error broker_stopping();
Error worker_draining(const std::string& worker);
/// It drains by itself and then exits.
Error worker_stopping(const std::string& worker);
/// By the worker `by`.
Error worker_replaced(const std::string& worker, const std::string& by);
/// It cannot restore its weights, for this reason.
Error worker_out_of_service(const std::string& worker, const std::string& why);
/// After a broker restart.
Error worker_reconnecting(const std::string& worker);
Error every_worker_draining();
Error tenant_draining(const TenantId& tenant);

}  // namespace leasehold
