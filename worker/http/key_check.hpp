/// Asks the broker for the tenant of a request's key: at once for a known one, otherwise at the
/// rate of its source.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "ipc/http/http_framing.hpp"
#include "worker/http/http_shared.hpp"

namespace leasehold::http {

struct Caller {
  Places::ConnectionId connection = 0;
  TenantId tenant;
  std::string key;
  ApiKeyId key_id;
  std::optional<std::string> last_event_id;  ///< As it was sent.
};

/// What a client gets when the broker did not check its key: BrokerLost for a call that the
/// broker did not receive or did not answer in time, otherwise `why`. Pure.
Error key_check_failure(Error why);

/// The tenant and key that send this head; the connection belongs to that tenant from then on.
/// After an error the connection is closed, so that each guess costs one. Errors: BadToken without
/// a key; BrokerLost; those of the broker's `key.check`; those of Places::authenticated.
boost::asio::awaitable<Result<Caller>> authenticate(Shared& shared, Places::ConnectionId id,
                                                    const Head& head);

}  // namespace leasehold::http
