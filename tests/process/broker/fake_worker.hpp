/// A worker without a model: attaches, maps its grants, and announces units as the test requests.
/// It names no protocol, so it is a worker of the version before.
///
/// Its connection runs on its own thread, as in a real worker.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <map>
#include <mutex>
#include <thread>

#include "ipc/control/messages.hpp"
#include "ipc/control/tokens/lease_token.hpp"
#include "ipc/control/transport/peer.hpp"
#include "ipc/table/table_reader.hpp"
#include "ipc/table/worker_segment.hpp"
#include "tests/process/broker/broker_process.hpp"
#include "tests/process/broker/forked_process.hpp"

namespace leasehold {

class FakeWorker {
 public:
  /// With an identity it may adopt memory; it then writes to all memory that it gets zeroed.
  FakeWorker(const std::string& socket, const std::string& name,
             const std::string& kv_identity = {});
  ~FakeWorker();
  FakeWorker(const FakeWorker&) = delete;
  FakeWorker& operator=(const FakeWorker&) = delete;

  /// Announces that thread 0 begins or ends a unit that can access tenant memory.
  void begin_unit() { segment_->announce(0).store(announcement(++seq_, Touches::TenantMemory)); }
  void end_unit() { segment_->announce(0).store(announcement(seq_, Touches::Nothing)); }
  void signal_wakeup_fd();
  /// Stores an arbitrary value, as a malicious worker would.
  void announce(std::uint32_t thread, std::uint64_t value) {
    segment_->announce(thread).store(value);
  }

  /// A duplicate descriptor of the lease's first extent, as a faulty worker would keep.
  UniqueFd keep_extent(LeaseId lease);
  LeaseWord word_of(LeaseId lease) const { return table_->word_of(lease); }
  TimePoint deadline_of(LeaseId lease) const { return table_->deadline(lease); }
  TokenKey token_key() const { return token_key_; }
  AttachmentId attachment() const { return attachment_; }

  /// From now on, writes to an extent before it confirms the unmap.
  void write_before_unmap() { writes_before_unmap_ = true; }

  /// Opens the weights of one fixed file. Errors: the broker's.
  Result<wire::WeightsOpened> open_weights();
  Result<void> publish_weights(RegionId region);

  /// Asks for swap extents of the lease.
  Result<wire::LeaseResized> grow_swap(LeaseId lease, std::uint32_t extents);

  /// Asks for its spill file; the descriptor is empty when none is lent.
  Result<UniqueFd> open_spill();

  /// From now on, replies to `lease.settle` wait for `send_settle_replies`.
  void defer_settle_replies() { defers_settle_replies_ = true; }
  /// Number of deferred replies.
  std::size_t settling();
  void send_settle_replies();

  /// Reports events with a call, so that the broker has processed them when this returns.
  void report(const wire::EventReport& events);

  /// Sends any call. Errors: the broker's.
  Result<control::Payload> ask(const std::string& method, control::Payload params);

  /// Number of leases it holds memory for.
  std::size_t granted();
  /// The lease whose bytes came with the grant.
  std::optional<LeaseId> adopted_from(LeaseId lease);
  /// The lease's extents in the order of the grants, and duplicates of their descriptors.
  std::vector<ExtentId> extents_of(LeaseId lease);
  std::vector<UniqueFd> copies_of(LeaseId lease);

  /// Resumes its attachment on a restarted broker.
  Result<void> reconnect(const std::string& socket);
  Result<void> redeliver(LeaseId lease, std::vector<ExtentId> extents, std::vector<UniqueFd> fds);
  Result<void> send_ready();

  /// Closes the connection; the process and its worker segment stay.
  void disconnect();

 private:
  void connect(const std::string& socket);
  control::Payload call(const std::string& method, control::Json params);
  void answer(const std::string& method, control::Payload params, control::Responder respond);

  boost::asio::io_context io_;
  std::shared_ptr<control::Peer> peer_;
  std::mutex mutex_;
  std::map<LeaseId, std::vector<UniqueFd>> granted_;
  std::map<LeaseId, std::vector<ExtentId>> extents_;
  std::map<LeaseId, LeaseId> adopted_from_;
  std::string name_;
  std::string kv_identity_;
  AttachmentId attachment_;
  std::optional<TableReader> table_;
  std::optional<WorkerSegmentWriter> segment_;
  UniqueFd wakeup_fd_;
  TokenKey token_key_{};
  std::uint64_t seq_ = 0;
  std::atomic<bool> writes_before_unmap_ = false;
  std::atomic<bool> defers_settle_replies_ = false;
  std::vector<control::Responder> settling_;
  std::jthread thread_;
};

/// A broker, a worker `w0`, and an operator's connection that has admitted the tenant `a`.
struct BrokerWithWorker {
  explicit BrokerWithWorker(std::vector<std::string> broker_arguments = {})
      : broker(std::move(broker_arguments)) {
    broker.admit(client, "a");
  }

  BrokerProcess broker;
  FakeWorker worker{broker.socket(), "w0"};
  control::Client client = broker.connect();
};

/// Starts a worker process and waits until it is ready and inside a unit that never ends.
ForkedProcess start_stuck_worker(const std::string& socket, const std::string& name = "stuck",
                                 const std::string& kv_identity = {});

}  // namespace leasehold
