/// The ids of a request. Clients choose client_request_id, so two tenants may choose the same id;
/// engine_request_id is unique in the worker.
#pragma once

#include <string>

#include "common/ids.hpp"

namespace leasehold {

/// "<tenant>/<client_request_id>". Tenant names contain no slash, so ids of different tenants never
/// collide.
inline RequestId to_engine_request_id(const TenantId& tenant, const RequestId& client_request_id) {
  return {tenant.value + "/" + client_request_id.value};
}

inline RequestId to_client_request_id(const RequestId& engine_request_id) {
  return {engine_request_id.value.substr(engine_request_id.value.find('/') + 1)};
}

inline TenantId tenant_of(const RequestId& engine_request_id) {
  return {engine_request_id.value.substr(0, engine_request_id.value.find('/'))};
}

}  // namespace leasehold
