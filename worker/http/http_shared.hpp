/// What the connections of one server share. Internal to worker/http.
#pragma once

#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include "common/process.hpp"
#include "ipc/http/http_await.hpp"
#include "tools/client/timers.hpp"
#include "worker/http/body_pace.hpp"
#include "worker/http/http_places.hpp"
#include "worker/http/http_server.hpp"
#include "worker/http/key_lease_holder.hpp"

namespace leasehold::http {

struct Shared {
  Server::Dependencies deps;
  client::AsioTimers timers;
  std::shared_ptr<KeyLeaseHolder> leases;
  Places places;
  BodyPace body_pace;
  boost::asio::thread_pool cpu{1};  ///< For work that would hold up the other connections.
  std::function<void(Places::ConnectionId)> close_connection;
  bool closing = false;
  std::atomic<bool> draining = false;        ///< Set by another thread.
  std::atomic<std::uint32_t> answering = 0;  ///< Requests of routes.
  /// Of these, the ones whose text is written as far as it goes without another lease.
  std::atomic<std::uint32_t> awaiting_lease = 0;

  explicit Shared(Server::Dependencies dependencies)
      : deps(std::move(dependencies)),
        timers(*deps.io),
        leases(KeyLeaseHolder::create(*deps.io, timers, deps.broker_socket, deps.idle_ttl)) {
    boost::asio::post(cpu, [] {
      set_thread_name("http-parse");
      use_batch_scheduling();
    });
  }
};

}  // namespace leasehold::http
