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

class RequestDirectory;

class HttpService {
 public:
  ~HttpService() { io_.stop(); }

  struct Dependencies {
    const OpenedModel* model = nullptr;
    BrokerLink* broker = nullptr;
    const Clock* clock = nullptr;
    const http::Health* health = nullptr;  ///< Reported by `/health`.
    const Tracing* tracing = nullptr;      ///< Null: no spans.
    RequestDirectory* requests = nullptr;
    metrics::Counter* refused_keys = nullptr;  ///< Counts requests whose key is refused.
    metrics::BatchLines* batch_lines = nullptr;
    std::function<http::WorkerLoad()> load;
  };
  /// With `--http`, listens, and serves texts of this identity. Errors: those of
  /// http::Server::create and BatchStore::open.
  Result<void> open(const WorkerOptions& options, const TextIdentity& identity,
                    const Dependencies& deps);

  /// Calls `use` on the thread of the server, or at once with null without a server.
  void with_answers(std::move_only_function<void(http::RunningAnswers*)> use);

  /// Call the functions of Server.
  void drain() {
    if (server_) server_->drain();
  }
  void forget_adapters();
  bool is_answering() const { return server_ && server_->is_answering(); }
  bool is_writing() const { return server_ && server_->is_writing(); }

  /// Ends the answers with Draining, waits at most a second until they are sent, and another one
  /// until the clients are disconnected.
  void close();

 private:
  std::unique_ptr<batch::BatchStore> batches_;  // null: no files and no batches
  IoThread io_;
  std::unique_ptr<http::Server> server_;  // null: no server
};

}  // namespace leasehold
