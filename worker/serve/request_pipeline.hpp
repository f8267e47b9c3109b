/// Brings requests to the engine, cancels them, and moves them to other leases.
///
///   submit ─► check ─► ParserQueue: prompt, grammar ─► submit_to_engine
///
/// A repeated submission of a resumable request also passes through the queue, whose thread
/// compares it with the first submission; then StreamResumer continues the stream.
///
/// Lifetime: see ServeDependencies.
/// Threads: that of the tenants' sockets.
#pragma once

#include <functional>

#include "worker/serve/parser_queue.hpp"
#include "worker/serve/stream_resumer.hpp"

namespace leasehold {

class RequestPipeline {
 public:
  using OnAccepted = std::function<void(std::uint64_t connection, LeaseId lease)>;

  /// Calls `on_accepted` for each request that is queued for the parser. `requests` and `resumable`
  /// outlive the pipeline.
  RequestPipeline(const ServeDependencies& dependencies, ClientRequests& requests,
                  ResumableStreams& resumable, OnAccepted on_accepted);

  /// Answers with an error, or with success once the engine has queued the request.
  void submit(const TenantConnection& connection, const control::Json& body,
              control::Responder respond);

  /// Cancels a request of this connection; idempotent. Errors: UnknownRequest.
  Result<void> cancel(const TenantConnection& connection, const control::Json& body);

  /// Ends a request in any state with `why`, unless its client has cancelled it. Its id stays in
  /// use while it is parsed. Returns false for an unknown request.
  bool stop(const RequestId& engine_request_id, const Error& why);

  /// Moves a running request of this connection to another lease of its tenant. Errors: BadToken,
  /// UnknownRequest, LeaseRevoked, LeaseFenced, and those of Engine::move.
  void move(const TenantConnection& connection, const control::Json& body,
            control::Responder respond);

  /// Calls StreamResumer::resume.
  void resume(const TenantConnection& connection, const control::Json& body,
              control::Responder respond) {
    resumer_.resume(connection, body, std::move(respond));
  }

  /// Cancels a request that has no reader.
  void abandon(const RequestId& engine_request_id);

  /// Cancels all requests of the connection except the resumable ones that are already parsed.
  void connection_closed(const TenantConnection& connection);

  /// While the broker is disconnected every new request is refused with BrokerLost.
  void set_broker_disconnected(bool disconnected) { broker_disconnected_ = disconnected; }

  /// Refuses every new request, and every request that is not parsed yet, with Draining. Requests
  /// in the engine continue, and their streams can be continued on other connections.
  void drain();
  /// Drains, and also lets no stream outlive its connection.
  void close() {
    drain();
    is_closing_ = true;
  }

 private:
  /// A checked request.move: the request and its new lease.
  struct MoveOrder {
    RequestId engine_request_id;
    LeaseId to;
  };
  Result<MoveOrder> check_move(const TenantConnection& connection, const control::Json& body) const;
  Result<IncomingRequest> check(const TenantConnection& connection,
                                const control::Json& body) const;
  std::optional<RequestTrace> begin_trace(const IncomingRequest& incoming,
                                          const std::optional<TraceContext>& caller) const;
  /// Sends the spans of a request that the engine never had, once.
  void end_trace(const RequestId& engine_request_id, Errc why);
  void on_parsed(IncomingRequest incoming, const Result<void>& parsed);
  void submit_to_engine(IncomingRequest incoming);
  void on_submitted(IncomingRequest submitted, const std::optional<Error>& refused);
  bool outlives_connection(const RequestId& engine_request_id);
  /// Forgets the request, counts the refusal, and answers with the error.
  void refuse_unparsed(const RequestId& engine_request_id, const Error& why);
  /// Counts the refusal, and answers with the error.
  void refuse(control::Responder respond, const Error& why);
  void cancel_in_engine(const RequestId& engine_request_id);

  ServeDependencies deps_;
  ClientRequests* requests_;
  ResumableStreams* resumable_;
  OnAccepted on_accepted_;
  StreamResumer resumer_;
  ParserQueue parser_queue_;
  bool broker_disconnected_ = false;
  bool is_draining_ = false;
  bool is_closing_ = false;
};

}  // namespace leasehold
