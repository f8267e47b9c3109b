/// The HTTP server of the worker program, with its thread.
///
/// Threads: `open` and `close` from the main thread. Lifetime: what `open` gets outlives it.
#pragma once

#include <memory>

#include "worker/http/http_server.hpp"
#include "worker/io_thread.hpp"
#include "worker/lease/broker_link.hpp"
#include "worker/opened_model.hpp"
#include "worker/options.hpp"

namespace leasehold {

class HttpPart {
 public:
  /// Listens, and answers. Null without `--http`. `unavailable` as http::Server's. Errors: those of
  /// http::Server::create.
  static Result<std::unique_ptr<HttpPart>> open(const WorkerOptions& options,
                                                const OpenedModel& model, BrokerLink& broker,
                                                const Clock& clock,
                                                std::function<std::optional<Error>()> unavailable);
  ~HttpPart() { io_.stop(); }

  /// As the functions of Server; any thread.
  void drain() { server_->drain(); }
  bool is_answering() const { return server_->is_answering(); }
  bool is_writing() const { return server_->is_writing(); }

  /// Cancels what runs, and waits at most a second until the clients are gone.
  void close();

 private:
  HttpPart() = default;
  IoThread io_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace leasehold
