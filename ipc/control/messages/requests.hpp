/// The requests of a worker: an operator lists and ends them. The rules for all messages are in
/// ipc/control/messages.hpp.
///
///   operator ── request.list, request.stop ──► broker ── the same ──► worker
///
/// The broker checks the caller's role and passes the call to the worker that it names. A worker
/// that does not answer in time delays only that call (TimedOut). A request is named by its id in
/// the worker, "<tenant>/<id of the client>" (worker/kv/request_ids.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"
#include "ipc/control/messages/common.hpp"

namespace leasehold::wire {

/// What a request does. Parsing: its prompt is tokenized. Waiting: it is queued and never ran.
/// Prefill: its prompt is computed. Decode: it generates. Preempted and Swapped: it ran and waits;
/// its KV is computed again, or copied back. AwaitingLease: an HTTP request that has no lease, also
/// between two leases. Ending: it was stopped or cancelled.
enum class RequestState : std::uint8_t {
  Parsing,
  Waiting,
  Prefill,
  Decode,
  Preempted,
  Swapped,
  AwaitingLease,
  Ending
};
inline constexpr int kRequestStateCount = 8;
/// "parsing", "waiting", "prefill", "decode", "preempted", "swapped", "awaiting_lease", "ending"
std::string_view name(RequestState state);

/// `request.list`: the requests of one worker in the order of their ids. Reply: RequestPage.
/// Errors: UnknownWorker; BrokerLost while the worker reconnects; TimedOut when it does not answer;
/// UnknownMethod for a worker of an earlier version.
struct RequestList : Message<RequestList> {
  static constexpr std::string_view kMethod = "request.list";
  std::string worker;
  std::optional<TenantId> tenant;
  /// Only requests with this name: "alice/req-1", the client's own id "req-1", the id of an HTTP
  /// answer, such as "chatcmpl-req-1", or its X-Request-Id. All choices of the answer have both.
  std::optional<std::string> id;
  std::optional<std::string> after;  ///< The last id of the previous page.
  std::uint32_t limit = 1000;        ///< 0 … 1000; a missing field means 1000.
};

/// The id in the worker of a tenant's request.
inline RequestId id_in_worker(const TenantId& tenant, const RequestId& client_request_id) {
  return {tenant.value + "/" + client_request_id.value};
}

/// The id of an HTTP answer without its beginning: "req-1" of "chatcmpl-req-1". Another id is
/// returned as it is. Pure.
std::string_view without_answer_prefix(std::string_view id);

struct RequestView : Message<RequestView> {
  std::string id;      ///< See id_in_worker.
  std::string worker;  ///< Set by brokerctl; not sent.
  RequestState state = RequestState::Parsing;
  std::optional<LeaseId> lease;
  std::uint32_t prompt_tokens = 0;       ///< 0: not known yet.
  std::uint32_t emitted_tokens = 0;      ///< Includes those under earlier leases.
  std::uint32_t max_emitted_tokens = 0;  ///< 0: not known yet.
  std::int64_t age_ms = 0;               ///< Since its newest submission.
  bool embeds = false;                   ///< It makes an embedding, no text. May be missing.
  bool detached = false;              ///< A resumable request that no client reads. May be missing.
  std::optional<ApiKeyId> key;        ///< The key of a request over HTTP.
  std::optional<std::string> answer;  ///< Id of the HTTP answer that the request belongs to.
  std::optional<std::string> x_request_id;  ///< The X-Request-Id of the HTTP exchange.
};

/// A request that ended recently.
struct EndedRequest : Message<EndedRequest> {
  std::string id;
  std::string reason;  ///< See RequestCompleted.
  std::int64_t ago_ms = 0;
};

struct RequestPage : Message<RequestPage> {
  std::vector<RequestView> items;  ///< Sent as columns (messages/json_columns.hpp).
  bool more = false;
  /// If RequestList::id names none of `items`: the requests of that name that ended recently.
  std::vector<EndedRequest> ended;
};

/// `request.stop`: ends requests in any state with RequestCancelled, and with each request the
/// other choices of its HTTP answer. Their clients do not retry. Each stops within one unit. Ids
/// that the worker does not have are ignored, so a repeated call is harmless. The broker records an
/// operator action for each stopped request. Reply: RequestsStopped. Errors: those of RequestList.
struct RequestStop : Message<RequestStop> {
  static constexpr std::string_view kMethod = "request.stop";
  static constexpr std::size_t kMaxIds = 256;
  std::string worker;
  std::vector<std::string> ids;  ///< 1 … kMaxIds
};

struct RequestsStopped : Message<RequestsStopped> {
  std::vector<std::string> ids;  ///< Up to 16 for each id of the call: the choices of its answer.
};

}  // namespace leasehold::wire
