/// The HTTP server of a worker: `/health`, and the paths of routes.cpp for clients with an API key.
///
/// A request without a valid key costs a place of its source and up to 16 KiB of head; only a key
/// of at most 128 bytes also costs one call to the broker. Its body is not read. With a valid key
/// it costs what the tenant may have (http_places.hpp). When the client leaves, its request is
/// cancelled within one unit, unless it is resumable. TLS is a proxy's business.
///
/// Lifetime: everything in Dependencies outlives it, and `io` has stopped before it ends. Threads:
/// the one that runs `io`, except `create`.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>

#include "common/clock.hpp"
#include "ipc/control/messages_operator.hpp"
#include "ipc/http/http_address.hpp"
#include "worker/http/api_request.hpp"
#include "worker/http/trusted_proxies.hpp"
#include "worker/text/tokenizer/tokenizer.hpp"

namespace leasehold::http {

class Server {
 public:
  using OnChecked = std::move_only_function<void(Result<wire::KeyView>)>;
  struct Dependencies {
    boost::asio::io_context* io = nullptr;
    const Clock* clock = nullptr;
    /// Asks the broker; calls back on any thread.
    std::function<void(std::string api_key, OnChecked)> check_key;
    std::string broker_socket;
    std::string worker;  ///< The name of this worker, whose leases the requests get.
    TrustedProxies trusted_proxies;
    ApiModel model;
    const Tokenizer* tokenizer = nullptr;
    EncodeChat encode_chat;
    Error stopping;  ///< The refusal of a worker that stops.
    /// Why nothing can be served, for `/health`; nothing while something can. Called on the
    /// server's thread. May be empty.
    std::function<std::optional<Error>()> unavailable = {};
    /// How long the lease of a key is kept after its last request.
    Duration idle_ttl = std::chrono::seconds(30);
    /// How long a resumable request goes on, or its text is kept, without a client.
    Duration result_grace = std::chrono::seconds(60);
    std::size_t max_body_bytes = 512 << 10;
  };

  /// Listens at once; connections wait in the backlog until `serve`. Errors: SocketInUse,
  /// PermissionDenied, SystemError; those of control::listen_on.
  static Result<std::unique_ptr<Server>> create(const Address& address, Dependencies dependencies);
  ~Server();

  /// Where it listens, with the port that the system chose for port 0.
  std::string listens_on() const;
  void serve();
  /// Refuses new requests with Draining and 503, also `/health`; what runs goes on, and clients can
  /// come back to it with Last-Event-ID. Any thread.
  void drain();
  bool is_answering() const;  ///< A request that was admitted is not answered. Any thread.
  /// One of them does not wait for a lease: it is generated, read or written. Any thread.
  bool is_writing() const;
  /// Accepts no more and cancels what runs.
  void close();
  bool is_closed() const;  ///< No connection is left.

 private:
  struct State;
  explicit Server(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace leasehold::http
