/// `requests` and `requests cancel`: reads the requests of every ready worker through the broker,
/// a page of each at a time, and ends some of them.
///
/// Workers that do not answer cost the broker's timeout for one call together; the rows of the
/// others are shown, and the result names the silent ones.
///
/// Threads: the caller's.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/brokerctl/run.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::brokerctl {

/// A worker whose requests are not known.
struct SilentWorker {
  std::string worker;
  Error why;
};

struct RequestRows {
  std::vector<wire::RequestView> requests;  ///< Sorted by id, then by worker.
  std::vector<SilentWorker> silent;
  std::vector<wire::EndedRequest> ended;  ///< With an id that names no request.
};

/// The error that names the first of these workers. `silent` is not empty. Pure.
Error silent_error(const std::vector<SilentWorker>& silent);

/// Reads the requests of one worker, or of all. Errors: UnknownWorker for a worker that is not
/// listed; those of the calls, if they are the broker's.
Result<RequestRows> read_requests(const ListRequests& query, const Dependencies& dependencies);

struct NamedRequests {
  RequestRows rows;              ///< Each request once, on the worker that runs it.
  std::optional<Error> problem;  ///< Set if a name matches no request.
};
/// Reads the requests with these names (wire::RequestList::id); without names all of them. Errors:
/// those of read_requests.
Result<NamedRequests> read_named_requests(ListRequests query, std::span<const std::string> names,
                                          const Dependencies& dependencies);

/// The requests that were cancelled, with their workers.
struct CancelledRequests {
  std::vector<wire::RequestView> requests;
  /// Set if a name matches no request, or if a worker did not answer. The others are cancelled.
  std::optional<Error> problem;
};
/// Cancels what the query names. Errors: BadRequest for a name of requests of several tenants and
/// for an X-Request-Id of several, in which case nothing is cancelled; those of read_requests.
Result<CancelledRequests> cancel_requests(const CancelRequests& query,
                                          const Dependencies& dependencies);

// The results for people and programs. Pure.
cli::Table requests_table(const std::vector<wire::RequestView>& requests);
wire::Json requests_json(const RequestRows& rows);
std::string requests_notes(const RequestRows& rows);  ///< Whole lines, or empty.
cli::Table cancelled_table(const std::vector<wire::RequestView>& requests);
wire::Json cancelled_json(const std::vector<wire::RequestView>& requests);

}  // namespace leasehold::brokerctl
