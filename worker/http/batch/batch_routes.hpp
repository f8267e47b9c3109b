/// The HTTP paths of batches: `/v1/batches`, `/v1/batches/ID` and `/v1/batches/ID/cancel`.
///
/// A batch belongs to the tenant of its key; another tenant's is answered as one that does not
/// exist (404).
#pragma once

#include "worker/http/routes.hpp"

namespace leasehold::http {

boost::asio::awaitable<void> serve_batch_creation(Shared& shared, const Caller& caller,
                                                  RouteInput input, HttpStream& stream);
boost::asio::awaitable<void> serve_batches(Shared& shared, const Caller& caller, RouteInput input,
                                           HttpStream& stream);
boost::asio::awaitable<void> serve_batch(Shared& shared, const Caller& caller, RouteInput input,
                                         HttpStream& stream);
boost::asio::awaitable<void> serve_batch_cancel(Shared& shared, const Caller& caller,
                                                RouteInput input, HttpStream& stream);

}  // namespace leasehold::http
