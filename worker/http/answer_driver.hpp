/// Runs the generation of a completion or chat and sends what it makes: one answer, or a stream.
///
/// The status waits for the first token or the end, so that a refusal has its own.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "worker/http/http_stream.hpp"
#include "worker/http/key_check.hpp"

namespace leasehold::http {

/// Returns when the answer has been sent, or the client has left.
boost::asio::awaitable<void> answer_request(Shared& shared, const Caller& caller,
                                            ApiRequest request, HttpStream& stream);

}  // namespace leasehold::http
