/// The HTTP server of the worker program, with its thread.
///
/// Threads: `open` and `close` from the main thread. Lifetime: the arguments of `open` outlive the
/// object.
#pragma once

#include <memory>

#include "worker/http/http_server.hpp"
#include "worker/io_thread.hpp"
#include "worker/lease/broker_session.hpp"
#include "worker/opened_model.hpp"
#include "worker/options.hpp"

namespace leasehold {

class HttpPart {
 public:
  /// Listens, and serves texts of this identity. Returns null without `--http`. The worker counts
  /// as loading until `health` is set. Errors: those of http::Server::create.
  static Result<std::unique_ptr<HttpPart>> open(const WorkerOptions& options,
                                                const OpenedModel& model,
                                                const TextIdentity& identity, BrokerSession& broker,
                                                const Clock& clock);
  ~HttpPart() { io_.stop(); }

  /// The state reported by `/health`. Threads: any.
  http::Health& health() { return health_; }
  /// Call the functions of Server. Threads: any.
  void drain() { server_->drain(); }
  bool is_answering() const { return server_->is_answering(); }
  bool is_writing() const { return server_->is_writing(); }

  /// Cancels running requests, and waits at most a second until the clients are disconnected.
  void close();

 private:
  explicit HttpPart(const BrokerSession& broker) : health_(broker.is_disconnected()) {}
  http::Health health_;
  IoThread io_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace leasehold
