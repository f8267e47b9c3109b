/// The HTTP server of the worker program, with its thread.
///
/// Threads: `open` and `close` from the main thread. Lifetime: what `open` gets outlives it.
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
  /// Listens, and answers for texts of `identity`. Null without `--http`. Until `health` says
  /// otherwise the worker counts as loading. Errors: those of http::Server::create.
  static Result<std::unique_ptr<HttpPart>> open(const WorkerOptions& options,
                                                const OpenedModel& model,
                                                const TextIdentity& identity, BrokerSession& broker,
                                                const Clock& clock);
  ~HttpPart() { io_.stop(); }

  /// What `/health` says; any thread.
  http::Health& health() { return health_; }
  /// As the functions of Server; any thread.
  void drain() { server_->drain(); }
  bool is_answering() const { return server_->is_answering(); }
  bool is_writing() const { return server_->is_writing(); }

  /// Cancels what runs, and waits at most a second until the clients are gone.
  void close();

 private:
  explicit HttpPart(const BrokerSession& broker) : health_(broker.is_disconnected()) {}
  http::Health health_;
  IoThread io_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace leasehold
