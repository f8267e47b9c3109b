/// Holds the leases of API keys at the broker: one for all requests of a key (key_lease_table.hpp).
///
/// Each session (ipc/client/session.hpp) has a share of its key's lease. When the lease ends, the
/// first session that learns of it asks for another lease, and the other sessions wait for the
/// answer. When a live lease must be replaced, one call replaces it for all sessions; the old lease
/// is released once every request has left it.
///
/// Lifetime: shared; each share keeps the holder alive. `io` and `timers` outlive it. Threads: the
/// one that runs `io`.
#pragma once

#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ipc/client/lease_holder.hpp"
#include "worker/http/keys/key_lease_table.hpp"

namespace leasehold::http {

class KeyLeaseHolder : public std::enable_shared_from_this<KeyLeaseHolder> {
 public:
  /// `idle_ttl`: how long a lease without requests is renewed. Zero: it is released at once.
  static std::shared_ptr<KeyLeaseHolder> create(boost::asio::io_context& io, client::Timers& timers,
                                                std::string broker_path, Duration idle_ttl);

  /// Makes the share of the key's lease for the session of one request.
  std::shared_ptr<client::SessionLease> share(ApiKeyId key, RequestId request);
  /// Keeps the lease that a request of the key runs under, even while the lease drains. Call it
  /// before the session leaves the request running.
  void keep(const ApiKeyId& key, const RequestId& request, Duration time);
  /// A client has received the end of the tenant's request, so no lease is kept for it.
  void finished(const TenantId& tenant, const RequestId& request);

 private:
  using Number = KeyLeaseTable::Number;
  class Share;
  struct Held {
    ApiKeyId key;
    std::shared_ptr<client::LeaseHolder> holder;
    wire::LeaseAcquire wanted;
    std::vector<std::weak_ptr<Share>>
        shares{};                       // that wait for the lease, use it, or have not left it
    wire::RebindMode replacing_mode{};  // mode of the replacement in flight
    TimePoint retry_until{};            // deadline for retries while other leases free memory
    client::Timer ask_timer{};
  };

  KeyLeaseHolder(boost::asio::io_context& io, client::Timers& timers, std::string broker_path,
                 Duration idle_ttl)
      : io_(io), timers_(timers), broker_path_(std::move(broker_path)), book_(idle_ttl) {}

  client::SessionLease::Handlers handlers_of(Number number);
  Held* find(Number number);
  std::vector<std::shared_ptr<Share>> shares_of(Number number);
  void join(const std::shared_ptr<Share>& share);
  void ask(Number number);
  void answered(Number number, const Result<wire::LeaseAcquired>& result);
  void refused(Number number, const Error& error);
  void replace(const std::shared_ptr<Share>& share, const wire::LeaseReplace& wanted);
  void replace_in_place(Number number, const std::shared_ptr<Share>& share,
                        const wire::LeaseReplace& wanted);
  void replaced(Number number, const Result<wire::LeaseAcquired>& result);
  void not_replaced(Number number, const Error& error);
  void draining(Number number, const wire::LeaseDraining& notice);
  enum class Why { Ended, Draining };
  void close(Number number, Why why);
  void close_if_over(const ApiKeyId& key);
  void leave(const Share& share, Number number);
  void left_previous(Number number);
  void release(Number number);
  void release_unused();

  boost::asio::io_context& io_;
  client::Timers& timers_;
  std::string broker_path_;
  KeyLeaseTable book_;
  std::map<Number, Held> held_;
  std::map<ApiKeyId, LeaseId> ended_;  // the ended lease of a key that needs another
  client::Timer expiry_timer_;
};

}  // namespace leasehold::http
