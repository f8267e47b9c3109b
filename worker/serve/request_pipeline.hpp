/// Checks, parses and submits requests to the engine, cancels them, and continues the streams of
/// resumable requests on other connections.
///
///   submit ─► check ─► queue ─► parser's thread: prompt, grammar ─► submit_to_engine
///
/// The parser takes one request of each tenant at a time, so a slow request delays neither other
/// tenants' requests nor other calls. Tenants share the limits on waiting requests
/// (common/fair_shares.hpp). A repeated submission of a resumable request also passes through the
/// queue to the parser's thread, which compares it with the first submission.
///
/// Lifetime: see ServeDependencies.
/// Threads: that of the tenants' sockets.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "common/fair_shares.hpp"
#include "worker/serve/connections.hpp"
#include "worker/serve/deliveries.hpp"
#include "worker/serve/request_parser.hpp"

namespace leasehold {

class RequestPipeline {
 public:
  using OnAccepted = std::function<void(std::uint64_t connection, LeaseId lease)>;

  /// Calls `on_accepted` for each request that is queued for the parser. `deliveries` and
  /// `resumable` outlive the pipeline.
  RequestPipeline(const ServeDependencies& dependencies, Deliveries& deliveries,
                  ResumableStreams& resumable, OnAccepted on_accepted);

  /// Answers with an error, or with success once the engine has queued the request.
  void submit(const TenantConnection& connection, const control::Json& body,
              control::Responder respond);

  /// Cancels a request of this connection; idempotent. Errors: UnknownRequest.
  Result<void> cancel(const TenantConnection& connection, const control::Json& body);

  /// Moves a running request of this connection to another lease of its tenant. Errors: BadToken,
  /// UnknownRequest, LeaseRevoked, LeaseFenced, and those of Engine::move.
  void move(const TenantConnection& connection, const control::Json& body,
            control::Responder respond);

  /// Continues a stream on this connection. Errors: UnknownRequest; BadRequest for a position whose
  /// token is not generated yet.
  void resume(const TenantConnection& connection, const control::Json& body,
              control::Responder respond);

  /// Cancels a request that has no reader.
  void abandon(const RequestId& engine_request_id);

  /// True while a request of the connection waits or runs.
  bool has_requests(std::uint64_t connection) const;

  /// Cancels all requests of the connection except the resumable ones that are already parsed.
  void connection_closed(const TenantConnection& connection);

  /// Removes a request whose stream has ended.
  void forget(const RequestId& engine_request_id);

  /// Detaches a request, which continues without a reader, from its connection.
  void reader_ended(const RequestId& engine_request_id);

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
  /// A request that waits for the parser.
  struct UnparsedRequest {
    wire::RequestSubmit request;
    LeaseClaim claim;
    std::uint64_t connection = 0;
    TimePoint submitted_at;
    std::optional<TimePoint> deadline;
    std::uint32_t delivered = 0;  ///< Tokens that the client has.
    /// The digest of the earlier submission that this one repeats.
    std::optional<BodyDigest> repeats{};
    bool joins = false;  ///< Only continues that submission's stream; the request is not parsed.
    control::Responder respond{};  ///< Set only when `joins`.
    RequestId engine_request_id() const;
  };
  struct ParsedRequest {
    PromptRequest request;
    TextStream text;
    TimePoint submitted_at;
    /// Set for a resumable request.
    std::optional<ResumableStreams::Stream> stream{};
    std::uint32_t delivered = 0;  ///< Tokens that the client has.
  };
  struct Request {
    std::uint64_t connection = 0;  ///< 0: a resumable request without a reader.
    control::Responder respond;    ///< Used until the request is parsed.
    bool is_resumable = false;
    bool is_parsed = false;
    bool is_cancelled = false;
  };
  /// A request that the engine was asked to queue.
  struct Submission {
    RequestId engine_request_id;
    std::uint64_t connection = 0;
    wire::RequestSubmitted answer;
    LeaseId lease{};
    bool is_resumable = false;
    std::uint32_t delivered = 0;  ///< Tokens that the client has.
  };
  /// The connection that reads a stream, and the lease whose token it showed.
  struct ReaderId {
    std::uint64_t connection = 0;
    LeaseId lease;
  };
  struct Connection {
    std::weak_ptr<control::Peer> peer;
    std::set<RequestId> engine_request_ids;  // queued, parsing or with the engine
  };
  /// A tenant's requests at the parser.
  struct ParserQueue {
    std::deque<UnparsedRequest> unparsed;
    bool is_parsing = false;
  };

  /// A checked request.move: the request and its new lease.
  struct MoveOrder {
    RequestId engine_request_id;
    LeaseId to;
  };
  Result<MoveOrder> check_move(const TenantConnection& connection, const control::Json& body) const;
  Result<RequestId> find_own(std::uint64_t connection, const RequestId& client_request_id) const;
  Result<UnparsedRequest> check(const TenantConnection& connection,
                                const control::Json& body) const;
  Result<void> check_id(UnparsedRequest& unparsed) const;
  static Result<BodyDigest> body_of(const UnparsedRequest& unparsed);
  Result<void> check_capacity(const TenantConnection& connection, const TenantId& tenant) const;
  void parse_next(const TenantId& tenant);
  Result<ParsedRequest> parse(const UnparsedRequest& unparsed, std::weak_ptr<control::Peer> peer);
  void on_parsed(const RequestId& engine_request_id, Result<ParsedRequest> parsed);
  void compare(UnparsedRequest repeated);
  void join(UnparsedRequest repeated, const Result<BodyDigest>& compared);
  void attach(const RequestId& engine_request_id, ReaderId reader, std::uint32_t from);
  void submit_to_engine(ParsedRequest parsed, Request& request);
  void on_submitted(const Submission& submission, Result<void> queued, control::Responder respond);
  void end_refused_stream(const RequestId& engine_request_id, const Error& error);
  bool outlives_connection(const RequestId& engine_request_id) const;
  void drop_unparsed(std::uint64_t connection, const TenantId& tenant);
  void erase(const RequestId& engine_request_id);
  /// Counts the refusal, and answers with the error.
  void refuse(control::Responder respond, const Error& why);
  void cancel_in_engine(const RequestId& engine_request_id);

  ServeDependencies deps_;
  Deliveries* deliveries_;
  ResumableStreams* resumable_;
  OnAccepted on_accepted_;
  RequestParser parser_;  // used only on the parser's thread
  bool broker_disconnected_ = false;
  bool is_draining_ = false;
  bool is_closing_ = false;
  std::unordered_map<std::uint64_t, Connection> connections_;  // connections that sent a request
  std::unordered_map<RequestId, Request> requests_;            // by engine_request_id
  std::map<TenantId, ParserQueue> parser_queues_;              // no entry is empty
  FairShares<TenantId> request_shares_;                        // of requests_
  FairShares<TenantId> unparsed_byte_shares_;
};

}  // namespace leasehold
