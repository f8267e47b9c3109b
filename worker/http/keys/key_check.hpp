/// Asks the broker for the tenant of a request's key: at once for a known key (known_keys.hpp), and
/// otherwise at the rate limit of the request's source.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>

#include "ipc/http/http_framing.hpp"
#include "worker/batch/batch_record.hpp"
#include "worker/http/http_shared.hpp"

namespace leasehold::http {

struct Caller {
  Places::ConnectionId connection = 0;
  TenantId tenant;
  std::int64_t tenant_admitted_unix_ms = 0;
  std::string key;
  ApiKeyId key_id;
  std::optional<std::string> last_event_id;  ///< The header's value, unchanged.
  /// A line of a batch, whose `key` is a batch key. Its lease gives way to others.
  bool is_batch = false;

  /// The owner of the caller's files and batches.
  batch::Owner owner() const { return {tenant, tenant_admitted_unix_ms}; }
  /// Whose lease the requests share: those of clients and those of batches have one each.
  ApiKeyId lease_owner() const { return is_batch ? ApiKeyId{key_id.value + "/batch"} : key_id; }
};

/// What a client gets when the broker did not check its key: BrokerLost for a call that the
/// broker did not receive or did not answer in time, otherwise `why`. Pure.
Error key_check_failure(Error why);

/// Finds the caller that sent this head, and moves the connection to the caller's tenant.
/// `moved_from`: see moved_from_in. The server closes the connection after an error, so each
/// guessed key costs a connection. Errors: BadToken without a key; BrokerLost; those of the
/// broker's `key.check`; those of Places::authenticated.
boost::asio::awaitable<Result<Caller>> authenticate(Shared& shared, Places::ConnectionId id,
                                                    const Head& head,
                                                    std::optional<HostName> moved_from);

}  // namespace leasehold::http
