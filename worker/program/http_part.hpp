/// The HTTP server of the worker program, with its thread.
///
/// Threads: `open` and `close` from the main thread. Lifetime: the arguments of `open` outlive the
/// object.
#pragma once

#include <memory>

#include "worker/http/http_server.hpp"
#include "worker/lease/broker_session.hpp"
#include "worker/options.hpp"
#include "worker/program/io_thread.hpp"
#include "worker/program/opened_model.hpp"

namespace leasehold {

class HttpPart {
 public:
  /// Listens, and serves texts of this identity. `/health` reports `health`. Returns null without
  /// `--http`. Errors: those of http::Server::create.
  static Result<std::unique_ptr<HttpPart>> open(const WorkerOptions& options,
                                                const OpenedModel& model,
                                                const TextIdentity& identity, BrokerSession& broker,
                                                const Clock& clock, const http::Health& health);
  ~HttpPart() { io_.stop(); }

  /// Call the functions of Server. Threads: any.
  void drain() { server_->drain(); }
  bool is_answering() const { return server_->is_answering(); }
  bool is_writing() const { return server_->is_writing(); }

  /// Cancels running requests, and waits at most a second until the clients are disconnected.
  void close();

 private:
  IoThread io_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace leasehold
