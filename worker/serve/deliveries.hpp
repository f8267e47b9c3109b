/// Delivers what the engine emits to the clients that asked for it, and reports each end to the
/// broker.
///
/// Threads: `deliver` and `complete_early` from any thread; the rest on the I/O thread. Lifetime:
/// everything in Dependencies outlives it.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>

#include "worker/lease/broker_link.hpp"
#include "worker/serve/delivery_queue.hpp"
#include "worker/serve/text_stream.hpp"

namespace leasehold {

/// Where the tokens of one parsed request go.
struct ClientStream {
  TextStream text;
  LeaseId lease;
  std::uint32_t max_emitted_tokens = 0;
};

class Deliveries {
 public:
  struct Dependencies {
    boost::asio::io_context* io = nullptr;
    BrokerLink* broker = nullptr;
    const Clock* clock = nullptr;
    std::string context_name;  ///< Names what holds `max_context` tokens.
    std::uint32_t max_context = 0;
    /// The stream of this request has ended and is closed.
    std::function<void(const RequestId& engine_request_id)> on_ended;
  };
  explicit Deliveries(Dependencies dependencies) : deps_(std::move(dependencies)) {}

  /// Precondition: no stream of this id is open.
  void open(const RequestId& engine_request_id, ClientStream stream);
  /// Closes the stream of a request that the engine refused: nothing is sent.
  void discard(const RequestId& engine_request_id) { streams_.erase(engine_request_id); }

  /// Queues the events of a step.
  void deliver(std::vector<SchedulerEvent> events);
  /// Queues a completion that must not wait for the end of the step.
  void complete_early(Completed completed);

 private:
  void deliver_batch();
  void deliver_one(const SchedulerEvent& event);
  void finish(const Completed& completed);
  void reject(const AdmissionRejected& rejected);
  void end_stream(const RequestId& engine_request_id, std::string_view reason,
                  std::uint32_t emitted_tokens, const std::function<void(TextStream&)>& send);
  void report_rebound(const Rebound& rebound);
  ClientStream* find(const RequestId& engine_request_id);
  std::string truncation_detail(const ClientStream& stream, const Completed& completed) const;

  Dependencies deps_;
  DeliveryQueue queue_;
  std::unordered_map<RequestId, ClientStream> streams_;  // by engine_request_id
};

}  // namespace leasehold
