/// Serves once the weights are bound: answers the broker's calls about leases and the tenants'
/// requests, with threads for the slow work.
///
/// Threads: constructed and closed on the main thread; the I/O thread alone uses `leases`, and the
/// thread of `tenant_io` alone uses `server`. Both have members that any thread may call. Lifetime:
/// everything in Dependencies outlives it.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <optional>

#include "common/turns.hpp"
#include "worker/adapter/adapter_loader.hpp"
#include "worker/compute/compute.hpp"
#include "worker/lease/broker_session.hpp"
#include "worker/lease/lease_service.hpp"
#include "worker/program/io_thread.hpp"
#include "worker/program/opened_model.hpp"
#include "worker/serve/tenant_server.hpp"

namespace leasehold {

class Serving {
 public:
  struct Dependencies {
    boost::asio::io_context* io = nullptr;         ///< Runs the broker's link.
    boost::asio::io_context* tenant_io = nullptr;  ///< Runs the tenants' sockets.
    EngineLoop* loop = nullptr;
    Engine* engine = nullptr;
    RunningRequests* running_requests = nullptr;
    BrokerSession* broker = nullptr;
    Compute* compute = nullptr;
    const OpenedModel* model = nullptr;
    EmbeddingModel embeddings{};
    const Clock* clock = nullptr;
    KvEvictionListener* eviction_listener = nullptr;  ///< May be null.
    RequestMetrics* metrics = nullptr;                ///< May be null.
    const Tracing* tracing = nullptr;                 ///< May be null.
    AdapterDirectory adapters = {};                   ///< Without a descriptor: no adapters.
    ThreadGate* engine_gate = nullptr;
    RevocationObserver* observer = nullptr;
  };
  Serving(const Dependencies& deps, TenantServer::Acceptor acceptor);

  LeaseService& leases() { return *leases_; }
  TenantServer& server() { return *server_; }
  /// Null without --adapters.
  AdapterLoader* adapters() { return adapters_ ? &*adapters_ : nullptr; }

  /// Closes the server and waits, for at most a second, until the queued output of its clients is
  /// sent.
  void close(IoThread& io);

 private:
  void start_threads();
  LeaseService::Dependencies lease_dependencies(const Dependencies& deps);
  AdapterLoader::Dependencies adapter_dependencies(const Dependencies& deps);

  // Each pool is destroyed before the service that it works for.
  std::optional<AdapterLoader> adapters_;
  std::optional<boost::asio::thread_pool> adapter_reader_;  // so that a slow disk delays no request
  std::optional<LeaseService> leases_;
  boost::asio::thread_pool mapper_{1};
  boost::asio::thread_pool unmapper_{1};
  std::optional<TenantServer> server_;
  boost::asio::thread_pool parser_{1};
  Turns<TenantId> line_turns_;
  boost::asio::thread_pool line_parser_{1};
};

}  // namespace leasehold
