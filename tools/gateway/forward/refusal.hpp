/// What a host answers that refuses a request.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string_view>

#include "tools/gateway/client_exchange.hpp"
#include "tools/gateway/forward/host_answer.hpp"

namespace leasehold::gateway {

struct Refusal {
  WholeAnswer answer;
  std::optional<Error> error;  ///< The result of error_in.
};

/// What an error for a client depends on.
struct ClientForm {
  Api api = Api::Completions;
  std::string x_request_id;

  static ClientForm of(const ClientExchange& client) {
    return {client.api(), client.x_request_id()};
  }
};

/// Nothing for an answer without a code that this version knows. Reads the forms of OpenAI's and
/// Anthropic's APIs, and the Retry-After of the head. Pure.
std::optional<Error> error_in(const HostHead& head, std::string_view body);

/// Reads the rest of an answer. One above 1 MiB is replaced by an error with its status. A host
/// whose own error asks for a pause gets no new request until then. The client may leave meanwhile.
/// Errors: those of read_whole_answer but MessageTooLarge.
boost::asio::awaitable<Result<Refusal>> read_refusal(Shared& shared, HostId host,
                                                     HostExchange exchange, ClientForm form);

}  // namespace leasehold::gateway
