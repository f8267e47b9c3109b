/// Delivers the engine's events to the clients of the requests, and reports each end to the broker.
///
/// Lifetime: see ServeDependencies.
/// Threads: `deliver` and `complete_early` from any thread; the rest on that of the tenants'
/// sockets.
#pragma once

#include <functional>
#include <string>

#include "worker/serve/client_requests.hpp"
#include "worker/serve/delivery_queue.hpp"
#include "worker/serve/dependencies.hpp"
#include "worker/serve/resumable_streams.hpp"
#include "worker/serve/unread_output.hpp"

namespace leasehold {

class Deliveries {
 public:
  /// `unread`, `resumable` and `requests` outlive the object.
  Deliveries(const ServeDependencies& dependencies, const UnreadOutput& unread,
             ResumableStreams& resumable, ClientRequests& requests)
      : deps_(dependencies), unread_(&unread), resumable_(&resumable), requests_(&requests) {}

  /// Queues the events of a step.
  void deliver(std::vector<SchedulerEvent> events);
  /// Queues a completion that must not wait for the end of the step.
  void complete_early(Completed completed);

 private:
  void deliver_batch();
  void deliver_one(const Token& token);
  void stop_unread(ClientRequest& request, const Token& next, Error why);
  void deliver_one(const Completed& observed);
  void deliver_one(const AdmissionRejected& rejected);
  void deliver_one(const Rebound& rebound);
  void deliver_one(const Preempted& preempted);
  void end_stream(const RequestId& engine_request_id, std::string_view reason,
                  std::uint32_t emitted_tokens,
                  const std::function<wire::RequestCompleted(TextStream&)>& send);
  static Completed end_of(const ClientRequest& request, const Completed& observed);
  void report_usage(const ClientRequest& request, const Completed& completed);
  void count_end(const ClientRequest& request, const Completed& completed);
  std::string truncation_detail(const ClientRequest& request, const Completed& completed) const;

  ServeDependencies deps_;
  const UnreadOutput* unread_;
  ResumableStreams* resumable_;
  ClientRequests* requests_;
  DeliveryQueue queue_;
};

}  // namespace leasehold
