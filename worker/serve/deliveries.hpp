/// Delivers the engine's events to the clients of the requests, and reports each end to the broker.
///
/// Lifetime: see ServeDependencies.
/// Threads: `deliver` and `complete_early` from any thread; the rest on that of the tenants'
/// sockets.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>

#include "worker/serve/delivery_queue.hpp"
#include "worker/serve/dependencies.hpp"
#include "worker/serve/resumable_streams.hpp"
#include "worker/serve/text_stream.hpp"
#include "worker/serve/unread_output.hpp"

namespace leasehold {

/// The destination of one parsed request's tokens.
struct ClientStream {
  TextStream text;
  LeaseId lease;
  std::uint32_t max_emitted_tokens = 0;
  bool may_shorten = false;   ///< The engine may have lowered `max_emitted_tokens`.
  bool is_resumable = false;  ///< The messages go to the ResumableStreams; `text` has no peer.
  RequestTiming timing = {};
  std::uint32_t emitted_before = 0;  ///< Tokens emitted under earlier leases.
  TimePoint first_token_at = {};     ///< Zero: no token was generated here.
  /// Set once the client leaves too much output unread: after that only this end is sent.
  std::optional<Completed> unread_end;
};

class Deliveries {
 public:
  using OnEnded = std::function<void(const RequestId& engine_request_id)>;

  /// Calls `on_ended` once the stream of a request has ended and is closed.
  /// `unread` and `resumable` outlive the object.
  Deliveries(const ServeDependencies& dependencies, const UnreadOutput& unread,
             ResumableStreams& resumable, OnEnded on_ended)
      : deps_(dependencies),
        unread_(&unread),
        resumable_(&resumable),
        on_ended_(std::move(on_ended)) {}

  /// Precondition: no stream of this id is open.
  void open(const RequestId& engine_request_id, ClientStream stream);
  /// Closes the stream of a request that the engine refused, without sending anything.
  void discard(const RequestId& engine_request_id) { close(engine_request_id); }

  /// Queues the events of a step.
  void deliver(std::vector<SchedulerEvent> events);
  /// Queues a completion that must not wait for the end of the step.
  void complete_early(Completed completed);

 private:
  void deliver_batch();
  void deliver_one(const Token& token);
  void stop_unread(ClientStream& stream, const Token& next, Error why);
  void deliver_one(const Completed& observed);
  void deliver_one(const AdmissionRejected& rejected);
  void deliver_one(const Rebound& rebound);
  void deliver_one(const Preempted& preempted);
  void end_stream(const RequestId& engine_request_id, std::string_view reason,
                  std::uint32_t emitted_tokens,
                  const std::function<wire::RequestCompleted(TextStream&)>& send);
  void report_usage(const ClientStream& stream, const Completed& completed);
  void close(const RequestId& engine_request_id);
  ClientStream* find(const RequestId& engine_request_id);
  void count_end(const ClientStream& stream, const Completed& completed);
  std::string truncation_detail(const ClientStream& stream, const Completed& completed) const;

  ServeDependencies deps_;
  const UnreadOutput* unread_;
  ResumableStreams* resumable_;
  OnEnded on_ended_;
  DeliveryQueue queue_;
  std::unordered_map<RequestId, ClientStream> streams_;  // by engine_request_id
};

}  // namespace leasehold
