/// The HTTP paths on which a client lists and cancels requests.
///
/// A client lists the answers of its own key and the tenant's detached requests, which are
/// resumable ones whose client has left, and cancels any request of its tenant. A request of
/// another tenant is answered as one that does not exist (404).
#pragma once

#include "worker/http/routes.hpp"

namespace leasehold::http {

boost::asio::awaitable<void> serve_requests(Shared& shared, const Caller& caller, RouteInput input,
                                            HttpStream& stream);
/// `POST /v1/requests/ID/cancel`. ID is the id of an answer or a request.
boost::asio::awaitable<void> serve_request_cancel(Shared& shared, const Caller& caller,
                                                  RouteInput input, HttpStream& stream);
/// `POST /v1/responses/ID/cancel`.
boost::asio::awaitable<void> serve_response_cancel(Shared& shared, const Caller& caller,
                                                   RouteInput input, HttpStream& stream);

/// The body of `GET /v1/requests`: the answers of this key and the `detached` requests, in the
/// order of their ids. Pure.
std::string requests_json(const RunningAnswers& answers, const ApiKeyId& key,
                          const std::vector<wire::RequestView>& detached, TimePoint now);

/// The ids of the requests in the worker that a client of the tenant may mean by `id`: its
/// request's own id, or the id of an answer. Pure.
std::vector<std::string> ids_meant(const TenantId& tenant, std::string_view id);

}  // namespace leasehold::http
