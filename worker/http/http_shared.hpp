/// What the connections of one server share. Internal to worker/http.
#pragma once

#include <atomic>

#include "ipc/client/timers.hpp"
#include "ipc/control/transport/queue_meter.hpp"
#include "ipc/http/body_rate_limiter.hpp"
#include "ipc/http/http_await.hpp"
#include "ipc/http/http_errors.hpp"
#include "ipc/http/http_places.hpp"
#include "ipc/http/known_keys.hpp"
#include "worker/http/http_server.hpp"
#include "worker/http/keys/key_lease_holder.hpp"
#include "worker/http/running_answers.hpp"
#include "worker/http/work_pool.hpp"

namespace leasehold::http {

class BatchRunner;

/// Adds one to a counter while this object exists.
class CountedIn {
 public:
  explicit CountedIn(std::atomic<std::uint32_t>& counter) : counter_(counter) { ++counter_; }
  ~CountedIn() { --counter_; }
  CountedIn(const CountedIn&) = delete;
  CountedIn& operator=(const CountedIn&) = delete;

 private:
  std::atomic<std::uint32_t>& counter_;
};

struct AnswerCounts {
  std::atomic<std::uint32_t> answering = 0;  ///< Requests that a route serves.
  /// The number of these that have written all the text that they can without another lease.
  std::atomic<std::uint32_t> awaiting_lease = 0;
};

struct Shared {
  Server::Dependencies deps;
  AdapterModels models;
  client::AsioTimers timers;
  std::shared_ptr<KeyLeaseHolder> leases;
  Places places;
  KnownKeys known_keys;
  BodyRateLimiter body_rate_limiter;
  control::QueueShares<TenantId> unread;  ///< Bytes of answers that clients leave unread.
  RunningAnswers running_answers;
  std::shared_ptr<BatchRunner> batches;  ///< Null without a store.
  WorkPool pool;
  std::function<void(Places::ConnectionId)> close_connection;
  bool closing = false;
  std::atomic<bool> draining = false;  ///< Set by another thread.
  AnswerCounts counts;

  explicit Shared(Server::Dependencies dependencies)
      : deps(std::move(dependencies)),
        models(*deps.io, deps.model, deps.list_adapters),
        timers(*deps.io),
        leases(KeyLeaseHolder::create(*deps.io, timers, deps.broker_socket, deps.idle_ttl)),
        unread(deps.max_unread_bytes) {}

  /// Call it when a request of the tenant fails.
  void note_failure(const TenantId& tenant, const Error& error) const {
    if (deps.want_part && status_of(error) == 429)
      deps.want_part({.tenant = tenant, .moved_from = {}});
  }
};

}  // namespace leasehold::http
