/// Runs the generations of one request and sends the answer, as one body or as a stream of events.
///
/// The HTTP status is sent with the first token, the first heartbeat or the end. An error before
/// that has a status of its own.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "worker/http/http_stream.hpp"
#include "worker/http/keys/key_check.hpp"

namespace leasehold::http {

/// Returns when the answer has been sent or the client has left.
boost::asio::awaitable<void> answer_request(Shared& shared, const Caller& caller,
                                            ApiRequest request, HttpStream& stream);

}  // namespace leasehold::http
