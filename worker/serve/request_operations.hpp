/// Lists the requests on the tenants' sockets, and stops them for an operator or their owner.
///
/// Lifetime: see ServeDependencies; the other arguments outlive the object.
/// Threads: that of the tenants' sockets.
#pragma once

#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "ipc/control/messages/requests.hpp"
#include "worker/serve/client_requests.hpp"
#include "worker/serve/request_pipeline.hpp"

namespace leasehold {

/// True if a person may mean this request by `text`: "alice/req-1", "req-1", or the id of an HTTP
/// answer, such as "chatcmpl-req-1". Pure.
bool is_named(const RequestId& engine_request_id, std::string_view text);

/// Removes the requests that the list does not ask for. Pure.
void keep_listed(const wire::RequestList& list, std::vector<wire::RequestView>& views);

/// One page of the requests in `served`, which are sorted and may have one item too many, and of
/// those in `answers` that are not in `served`. A request in both gets `key` and `answer` of the
/// latter. Pure.
wire::RequestPage page_of(const wire::RequestList& list, std::vector<wire::RequestView> served,
                          std::vector<wire::RequestView> answers);

class RequestOperations {
 public:
  RequestOperations(const ServeDependencies& dependencies, ClientRequests& requests,
                    RequestPipeline& pipeline)
      : deps_(dependencies), requests_(&requests), pipeline_(&pipeline) {}

  /// The first `limit` requests that match the list, in the order of their ids, and one more if
  /// more follow. A request in `named` matches `list.id` whatever its own id is.
  std::vector<wire::RequestView> views(const wire::RequestList& list,
                                       const std::unordered_set<RequestId>& named) const;
  /// Requests that RequestList::id names and that ended recently, the newest first.
  std::vector<wire::EndedRequest> ended(const wire::RequestList& list) const;
  /// Stops these requests with `why`. Returns those that are known.
  std::vector<RequestId> stop(std::span<const RequestId> engine_request_ids, const Error& why);

 private:
  ServeDependencies deps_;
  ClientRequests* requests_;
  RequestPipeline* pipeline_;
};

}  // namespace leasehold
