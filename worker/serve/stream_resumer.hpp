/// Continues the streams of resumable requests on the connections that ask for them: by a repeated
/// submission, or by `request.resume`.
///
/// Lifetime: all that it is constructed with outlives it. Threads: that of the tenants' sockets.
#pragma once

#include "worker/serve/client_requests.hpp"
#include "worker/serve/dependencies.hpp"
#include "worker/serve/request_parser.hpp"
#include "worker/serve/resumable_streams.hpp"

namespace leasehold {

class StreamResumer {
 public:
  StreamResumer(const ServeDependencies& dependencies, ClientRequests& requests,
                ResumableStreams& streams)
      : table_(dependencies.table),
        clock_(dependencies.clock),
        requests_(&requests),
        streams_(&streams) {}

  /// Checks the id of a submission. A submission that repeats an earlier one joins its stream. If
  /// that stream was interrupted, its kept tokens are added to the submission, so that generation
  /// continues after them. Errors: BadRequest for an id in use; for a resumable request also
  /// QueueFull while the earlier one cannot be joined, and RequestIdConflict.
  Result<void> check_id(IncomingRequest& incoming) const;

  /// Answers a submission that joins a stream. Precondition: it is parsed.
  void join(IncomingRequest repeated, const Result<void>& parsed);

  /// Answers `request.resume`. Errors: UnknownRequest; BadRequest for a position whose token is not
  /// generated yet; LeaseRevoked, LeaseFenced.
  void resume(const TenantConnection& connection, const control::Json& body,
              control::Responder respond);

  /// Makes the connection that submitted a request the first reader of its stream, and answers.
  void attach_first(IncomingRequest submitted);

  /// Ends the stream of a refused request. Tokens generated for an earlier submission stay for the
  /// next one.
  void end_refused(const RequestId& engine_request_id, const Error& error);

 private:
  struct Reader {
    std::uint64_t connection = 0;
    LeaseId lease;  ///< The lease whose token the connection showed.
    std::uint32_t next_position = 0;
  };
  void attach(const RequestId& engine_request_id, const Reader& reader);

  const TableReader* table_;
  const Clock* clock_;
  ClientRequests* requests_;
  ResumableStreams* streams_;
};

}  // namespace leasehold
