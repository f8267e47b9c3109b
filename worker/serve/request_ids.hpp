/// One name for a request inside the worker: tenants choose ids, so two may choose the same.
#pragma once

#include <string>

#include "common/ids.hpp"

namespace leasehold {

/// "<tenant>/<id>"; the slash is in no name, so this cannot be guessed across tenants.
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
