/// Computes the embeddings of one request and sends the answer.
///
/// Each input is a request of its own to the worker: it counts against the limits of the tenant,
/// and continues under another lease when its own is revoked. At most kMaxRunningInputs run at
/// once. The first input that fails ends the answer.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "worker/http/api/embeddings.hpp"
#include "worker/http/http_stream.hpp"
#include "worker/http/keys/key_check.hpp"

namespace leasehold::http {

inline constexpr std::size_t kMaxRunningInputs = 16;

/// Returns when the answer has been sent or the client has left.
boost::asio::awaitable<void> answer_request(Shared& shared, const Caller& caller,
                                            EmbeddingsRequest request, HttpStream& stream);

}  // namespace leasehold::http
