/// What a host answers that refuses a request.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string_view>

#include "tools/gateway/forward/host_answer.hpp"

namespace leasehold::gateway {

struct Refusal {
  WholeAnswer answer;
  std::optional<Error> error;  ///< The result of error_in.
};

/// Nothing for an answer without a code that this version knows. Reads the forms of OpenAI's and
/// Anthropic's APIs, and the Retry-After of the head. Pure.
std::optional<Error> error_in(const HostHead& head, std::string_view body);

/// Reads the rest of an answer. A host whose own error asks for a pause gets no new request until
/// then. Errors: those of read_whole_answer.
boost::asio::awaitable<Result<Refusal>> read_refusal(Shared& shared, HostId host,
                                                     HostExchange exchange);

}  // namespace leasehold::gateway
