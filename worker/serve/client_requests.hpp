/// The requests of the connected tenants: one record for each, from its submission until its end
/// has been sent. Also knows which connection each belongs to.
///
/// Tenants share the limit on requests (common/fair_shares.hpp).
///
/// Threads: that of the tenants' sockets.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/fair_shares.hpp"
#include "worker/kv/eviction_listener.hpp"
#include "worker/metrics/request_metrics.hpp"
#include "worker/serve/connections.hpp"
#include "worker/serve/request_trace.hpp"
#include "worker/serve/text_stream.hpp"

namespace leasehold {

/// What is shown of a request in the engine.
struct RequestProgress {
  std::uint32_t emitted_tokens = 0;    ///< Includes those under earlier leases.
  std::uint32_t shortened_to = 0;      ///< The engine's lower limit of tokens; 0: none.
  bool embeds = false;                 ///< The request makes an embedding, not a text.
  bool is_generating = false;          ///< It has generated a token since its last admission.
  std::optional<Preempted> preempted;  ///< Its last preemption, if there was one.
};

/// What the client calls the request, for logs and traces.
struct RequestLabels {
  std::string x_request_id{};           ///< See RequestSubmit.
  std::string trace_id{};               ///< Empty: none.
  std::optional<RequestTrace> trace{};  ///< The spans of a sampled trace.
};

struct ClientRequest {
  std::uint64_t connection = 0;  ///< 0: the connection has closed, or the stream has no reader.
  LeaseId lease{};
  bool is_resumable = false;  ///< The messages go to ResumableStreams; `text` has no peer.
  bool is_cancelled = false;
  control::Responder respond;  ///< Used until the request is parsed.
  RequestLabels labels{};

  // Set when the request is parsed and goes to the engine.
  std::optional<TextStream> text{};
  std::uint32_t max_emitted_tokens = 0;
  bool may_shorten = false;  ///< The engine may have lowered `max_emitted_tokens`.
  RequestTiming timing{};
  std::uint32_t emitted_before = 0;  ///< Tokens emitted under earlier leases.

  TimePoint first_token_at{};  ///< Zero: no token was generated here.
  RequestProgress progress{};
  /// Set once the client leaves too much output unread: after that only this end is sent.
  std::optional<Completed> unread_end{};
  /// Set once an operator or the request's owner stopped it: any end but a complete text becomes
  /// this error.
  std::optional<Error> stopped_by{};

  bool is_parsed() const { return text.has_value(); }
};

/// The newest ends of requests, for the error of a cancel that comes too late. The oldest is
/// dropped first.
class RecentEnds {
 public:
  static constexpr std::size_t kMaxEnds = 1024;
  struct End {
    RequestId engine_request_id;
    std::string reason;
    TimePoint at;
  };
  void add(End end) {
    if (ends_.size() == kMaxEnds) ends_.pop_front();
    ends_.push_back(std::move(end));
  }
  const std::deque<End>& all() const { return ends_; }  ///< The oldest first.

 private:
  std::deque<End> ends_;
};

class ClientRequests {
 public:
  /// `listener` may be null: no index outside the worker.
  explicit ClientRequests(KvEvictionListener* listener);

  /// Errors: QuotaConcurrent for the connection's requests, QueueFull for the tenant's.
  Result<void> check_capacity(std::uint64_t connection, const TenantId& tenant) const;
  /// Precondition: no request has this id, and its connection is open.
  void add(const RequestId& engine_request_id, ClientRequest request);
  /// Returns null for an unknown id.
  ClientRequest* find(const RequestId& engine_request_id);
  /// Returns null also while the request is being parsed: an event of the engine then belongs to an
  /// earlier request with the same id.
  ClientRequest* find_parsed(const RequestId& engine_request_id);
  /// Notes that the request goes to the engine with this text. Precondition: it is known.
  ClientRequest& parsed(const RequestId& engine_request_id, TextStream text);
  /// Removes the request; does nothing for an unknown one.
  void forget(const RequestId& engine_request_id);
  std::vector<RequestId> unparsed() const;
  const std::unordered_map<RequestId, ClientRequest>& all() const { return requests_; }
  RecentEnds& recent_ends() { return recent_ends_; }
  const RecentEnds& recent_ends() const { return recent_ends_; }

  /// Notes a connection that sends or reads requests.
  void opened(const TenantConnection& connection);
  bool is_open(std::uint64_t connection) const { return connections_.contains(connection); }
  /// Returns null once the connection is closed.
  const std::weak_ptr<control::Peer>* peer_of(std::uint64_t connection) const;
  bool has_requests(std::uint64_t connection) const;
  /// Errors: UnknownRequest.
  Result<RequestId> find_own(std::uint64_t connection, const RequestId& client_request_id) const;
  /// Makes the request belong to this open connection. Does nothing for an unknown request.
  void attach(const RequestId& engine_request_id, std::uint64_t connection);
  /// Makes the request belong to no connection. Does nothing for an unknown request.
  void detach(const RequestId& engine_request_id);
  /// Forgets the connection, and returns the requests that belonged to it.
  std::set<RequestId> closed(std::uint64_t connection);

 private:
  struct Connection {
    std::weak_ptr<control::Peer> peer;
    std::set<RequestId> engine_request_ids;
  };

  KvEvictionListener* listener_;
  std::unordered_map<std::uint64_t, Connection> connections_;
  std::unordered_map<RequestId, ClientRequest> requests_;  // by engine_request_id
  FairShares<TenantId> shares_;                            // of requests_
  RecentEnds recent_ends_;
};

}  // namespace leasehold
