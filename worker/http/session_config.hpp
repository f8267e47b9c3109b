/// The session of a request that comes over HTTP: it has a share of the lease of the client's key,
/// and continues under another lease until the client leaves.
#pragma once

#include <utility>

#include "ipc/client/session.hpp"
#include "worker/http/exchange_labels.hpp"
#include "worker/http/http_shared.hpp"
#include "worker/http/keys/key_check.hpp"

namespace leasehold::http {

inline client::SessionConfig session_config(const Shared& shared, const Caller& caller,
                                            const ExchangeLabels& labels,
                                            wire::RequestSubmit submit) {
  client::SessionConfig config;
  config.broker_path = shared.deps.broker_socket;
  config.tenant = caller.tenant;
  config.worker = shared.deps.worker;
  config.api_key = caller.key;
  config.rebind = true;
  config.retry.rebind_timeout = Duration::max();  // the client ends the wait by leaving
  config.scavenger = caller.is_batch;
  config.lease = shared.leases->share(caller.lease_owner(), submit.request_id);
  submit.x_request_id = labels.x_request_id;
  if (labels.trace) submit.traceparent = labels.trace->text();
  config.request = std::move(submit);
  return config;
}

}  // namespace leasehold::http
