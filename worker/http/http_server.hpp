/// The HTTP server of a worker: the state of the worker (state_paths.hpp), and the paths of
/// routes.cpp for clients with an API key.
///
/// A request without a valid key uses one of its source's places and up to 16 KiB for its head; its
/// body is not read. A key of at most 128 bytes also costs one call to the broker, and a longer one
/// is refused without a call. A request with a valid key uses its tenant's share (http_places.hpp).
/// When the client leaves, its request is cancelled within one unit, unless the request is
/// resumable. TLS is left to a proxy.
///
/// Lifetime: everything in Dependencies outlives it, and `io` has stopped before it ends. Threads:
/// the one that runs `io`, except `create`.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "common/metrics/batch_lines.hpp"
#include "common/metrics/counters.hpp"
#include "ipc/control/messages/cell/agent_calls.hpp"
#include "ipc/control/messages/keys.hpp"
#include "ipc/http/http_address.hpp"
#include "ipc/http/trusted_proxies.hpp"
#include "worker/http/adapter_models.hpp"
#include "worker/http/api/api_request.hpp"
#include "worker/http/cross_origin.hpp"
#include "worker/http/health.hpp"
#include "worker/http/running_answers.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"
#include "worker/trace/tracing.hpp"

namespace leasehold::batch {
class BatchStore;
}  // namespace leasehold::batch

namespace leasehold::http {

struct WorkerLoad {
  std::uint64_t running = 0;  ///< Requests, also those of tenants on the worker's socket.
  std::uint64_t waiting = 0;
};

class Server {
 public:
  using OnTenantsChecked = std::move_only_function<void(Result<wire::TenantCheck>)>;
  using OnChecked = std::move_only_function<void(Result<wire::KeyOwner>)>;
  using OnListed = std::move_only_function<void(std::vector<wire::RequestView>)>;
  using OnStopped = std::move_only_function<void(std::vector<RequestId> stopped)>;
  struct Dependencies {
    boost::asio::io_context* io = nullptr;
    const Clock* clock = nullptr;
    /// Asks the broker to check a key of a request, whose text may have moved here from another
    /// host of the cell. Calls back on any thread.
    std::function<void(wire::KeyCheck, std::optional<HostName> moved_from, OnChecked)> check_key;
    /// Says that a request of the tenant was refused because a limit is used up, or that its text
    /// has moved here. Null: not said.
    std::function<void(wire::PartWant)> want_part = {};
    /// Asks the broker which tenants were removed. Calls back on any thread. Null: never asked.
    std::function<void(const wire::TenantCheck&, OnTenantsChecked)> check_tenants;
    std::string broker_socket;
    std::string worker;  ///< The name of this worker, whose leases the requests get.
    std::string host_name = "localhost";  ///< See is_host_name; each answer has it.
    TrustedProxies trusted_proxies;
    ApiModel model;
    AdapterModels::List list_adapters = {};  ///< Null: no adapters.
    /// What `/leasehold/host` reports; at most about a second old. Null: no requests. Any thread.
    std::function<WorkerLoad()> load = {};
    const Tokenizer* tokenizer = nullptr;
    EncodeChat encode_chat;
    Error stopping;  ///< The error for new requests while the worker stops.
    /// How long the lease of a key is kept after its last request.
    Duration idle_ttl = std::chrono::seconds(30);
    /// How long a resumable request goes on, or its text is kept, without a client.
    Duration result_grace = std::chrono::seconds(60);
    std::size_t max_body_bytes = 512 << 10;
    /// Limit for unread answers, shared by all tenants. A connection whose unread answer exceeds
    /// its tenant's share is closed.
    std::size_t max_unread_bytes = 64 << 20;
    const Health* health = nullptr;    ///< Null: the worker is always healthy.
    const Tracing* tracing = nullptr;  ///< Null: no spans.
    /// Lists the tenant's resumable requests whose clients have left. Calls back on any thread.
    std::function<void(const TenantId&, OnListed)> list_detached;
    /// Ends these requests with RequestCancelled, and with each the other choices of its answer.
    /// Calls back, on any thread, with the ids of the requests that it found.
    std::function<void(std::vector<std::string> ids, OnStopped)> stop_requests = {};
    /// Counts the requests whose key the broker did not accept. Null: not counted.
    metrics::Counter* refused_keys = nullptr;
    AllowedOrigins allowed_origins{};
    /// A stream that has sent nothing for this long sends a comment. Zero: never.
    Duration heartbeat = Duration::zero();
    batch::BatchStore* batch_store = nullptr;    ///< Null: no files and no batches.
    metrics::BatchLines* batch_lines = nullptr;  ///< Null: lines are not counted.
    std::uint64_t max_file_bytes = 0;            ///< Limit for the body of an upload.
  };

  /// Listens at once; connections wait in the backlog until `serve`. Errors: SocketInUse,
  /// PermissionDenied, SystemError; those of control::listen_on.
  static Result<std::unique_ptr<Server>> create(const Address& address, Dependencies dependencies);
  ~Server();

  /// The address that it listens on, with the port that the system chose for port 0.
  std::string listens_on() const;
  void serve();
  /// Refuses new requests and `/health` with Draining and status 503. Running requests continue,
  /// and clients can resume them with Last-Event-ID. Any thread.
  void drain();
  /// Calls AdapterModels::forget. Any thread.
  void forget_adapters();
  bool is_answering() const;  ///< True while an admitted request is unanswered. Any thread.
  /// True while at least one such request is being read, generated or written, and does not wait
  /// for a lease. Any thread.
  bool is_writing() const;
  /// The answers that are being generated; used only on the thread that runs `io`.
  RunningAnswers& running_answers();
  /// Refuses new requests, as `drain` does, and ends each answer with Dependencies::stopping. Used
  /// on the thread that runs `io`.
  void end_answers();
  /// Accepts no more connections and cancels running requests.
  void close();
  bool is_closed() const;  ///< No connection is left.

 private:
  struct State;
  class KeptConnection;
  explicit Server(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace leasehold::http
