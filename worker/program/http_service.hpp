/// The HTTP server of the worker program, with its thread.
///
/// Without `--http`, or before `open`, there is no server: nothing is answered or written.
///
/// Threads: `open`, which precedes all other calls, and `close` from the main thread; the rest from
/// any. Lifetime: the arguments of `open` outlive the object.
#pragma once

#include <memory>

#include "worker/http/http_server.hpp"
#include "worker/lease/broker_link.hpp"
#include "worker/options.hpp"
#include "worker/program/io_thread.hpp"
#include "worker/program/opened_model.hpp"

namespace leasehold {

class HttpService {
 public:
  ~HttpService() { io_.stop(); }

  /// With `--http`, listens, and serves texts of this identity. `/health` reports `health`. Errors:
  /// those of http::Server::create.
  Result<void> open(const WorkerOptions& options, const OpenedModel& model,
                    const TextIdentity& identity, BrokerLink& broker, const Clock& clock,
                    const http::Health& health);

  /// Counts the requests whose key is refused. Call it before `open`; `counter` outlives the object.
  void count_refused_keys(metrics::Counter& counter) { refused_keys_ = &counter; }

  /// Call the functions of Server.
  void drain() {
    if (server_) server_->drain();
  }
  bool is_answering() const { return server_ && server_->is_answering(); }
  bool is_writing() const { return server_ && server_->is_writing(); }

  /// Cancels running requests, and waits at most a second until the clients are disconnected.
  void close();

 private:
  IoThread io_;
  metrics::Counter* refused_keys_ = nullptr;
  std::unique_ptr<http::Server> server_;  // null: no server
};

}  // namespace leasehold
