/// Delivers the engine's events to the clients of the requests, and reports each end to the broker.
///
/// Lifetime: see ServeDependencies.
/// Threads: `deliver` and `complete_early` from any thread; the rest on that of the tenants'
/// sockets.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "worker/serve/client_requests.hpp"
#include "worker/serve/delivery_queue.hpp"
#include "worker/serve/dependencies.hpp"
#include "worker/serve/logprob_pacer.hpp"
#include "worker/serve/resumable_streams.hpp"
#include "worker/serve/unread_output.hpp"

namespace leasehold {

class Deliveries {
 public:
  /// `unread`, `resumable` and `requests` outlive the object.
  Deliveries(const ServeDependencies& dependencies, const UnreadOutput& unread,
             ResumableStreams& resumable, ClientRequests& requests)
      : deps_(dependencies),
        unread_(&unread),
        resumable_(&resumable),
        requests_(&requests),
        pacer_(*dependencies.io, *dependencies.clock,
               {.unread_bytes = [this](const RequestId& id) { return unread_bytes(id); },
                .on_taken = [this](const RequestId& id,
                                   std::uint32_t positions) { logprobs_taken(id, positions); },
                .on_stalled = [this](const RequestId& id) { logprobs_stalled(id); }}) {}

  /// Queues the events of a step.
  void deliver(std::vector<SchedulerEvent> events);
  /// Queues a completion that must not wait for the end of the step.
  void complete_early(Completed completed);

 private:
  void deliver_batch();
  void deliver_one(const Token& token);
  void deliver_one(const PromptLogprobs& logprobs);
  void stop_unread(ClientRequest& request, Completed end, Error why);
  void deliver_one(const Completed& observed);
  void deliver_one(const AdmissionRejected& rejected);
  void deliver_one(const Rebound& rebound);
  void deliver_one(const Preempted& preempted);
  void deliver_one(const Admitted& admitted);
  void note_end(ClientRequest& request, const Completed& completed);
  void end_stream(const RequestId& engine_request_id, std::string_view reason,
                  std::uint32_t emitted_tokens,
                  const std::function<wire::RequestCompleted(TextStream&)>& send);
  static Completed end_of(const ClientRequest& request, const Completed& observed);
  void withhold_unread(const ClientRequest& request, Completed& completed);
  void report_usage(const ClientRequest& request, const Completed& completed);
  void count_end(const ClientRequest& request, const Completed& completed);
  std::optional<std::size_t> unread_bytes(const RequestId& engine_request_id) const;
  void logprobs_taken(const RequestId& engine_request_id, std::uint32_t positions);
  void logprobs_stalled(const RequestId& engine_request_id);
  std::string truncation_detail(const ClientRequest& request, const Completed& completed) const;

  ServeDependencies deps_;
  const UnreadOutput* unread_;
  ResumableStreams* resumable_;
  ClientRequests* requests_;
  DeliveryQueue queue_;
  LogprobPacer pacer_;
};

}  // namespace leasehold
