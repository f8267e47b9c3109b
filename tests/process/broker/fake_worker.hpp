/// A worker without a model: attaches, maps what it is granted, announces what the test wants.
///
/// Its connection runs on a thread of its own, as in a real worker.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <map>
#include <mutex>
#include <thread>

#include "ipc/control/lease_token.hpp"
#include "ipc/control/messages.hpp"
#include "ipc/control/peer.hpp"
#include "ipc/table/table_reader.hpp"
#include "ipc/table/worker_segment.hpp"

namespace leasehold {

class FakeWorker {
 public:
  FakeWorker(const std::string& socket, const std::string& name);
  ~FakeWorker();
  FakeWorker(const FakeWorker&) = delete;
  FakeWorker& operator=(const FakeWorker&) = delete;

  /// Thread 0 begins a unit that can reach tenant memory, or ends it.
  void begin_unit();
  void end_unit();
  void signal_wakeup_fd();
  /// Any value at all, as a lying worker would store.
  void announce(std::uint32_t thread, std::uint64_t value) {
    segment_->announce(thread).store(value);
  }

  /// A second descriptor of the lease's first extent, as a careless worker would keep.
  UniqueFd keep_extent(LeaseId lease);
  LeaseWord word_of(LeaseId lease) const { return table_->word_of(lease); }
  TokenKey token_key() const { return token_key_; }

  /// From now on writes into what it must unmap, once it was told to.
  void write_before_unmap() { writes_before_unmap_ = true; }

  /// The weights of one file, always the same. Errors: the broker's.
  Result<wire::WeightsOpened> open_weights();
  Result<void> publish_weights(RegionId region);

  /// From now on what it is asked to settle waits for `say_settled`.
  void settle_by_hand() { settles_by_hand_ = true; }
  /// Leases it was asked to settle and has not answered for.
  std::size_t settling();
  void say_settled();

  /// By a call, so that the broker has seen it when this returns.
  void report(const wire::EventReport& events);

  /// How many leases it holds memory of.
  std::size_t granted();
  /// What it was granted, in the order it came, and second descriptors of it.
  std::vector<ExtentId> extents_of(LeaseId lease);
  std::vector<UniqueFd> copies_of(LeaseId lease);

  /// Attaches to a broker that was started again, as the one it was.
  Result<void> reconnect(const std::string& socket);
  Result<void> redeliver(LeaseId lease, std::vector<ExtentId> extents, std::vector<UniqueFd> fds);
  Result<void> send_ready();

  /// Closes the connection; the process and its line live on.
  void disconnect();

 private:
  void connect(const std::string& socket);
  control::Payload call(const std::string& method, control::Json params);
  Result<control::Payload> ask(const std::string& method, control::Payload params);
  void answer(const std::string& method, control::Payload params, control::Responder respond);

  boost::asio::io_context io_;
  std::shared_ptr<control::Peer> peer_;
  std::mutex mutex_;
  std::map<LeaseId, std::vector<UniqueFd>> granted_;
  std::map<LeaseId, std::vector<ExtentId>> extents_;
  std::string name_;
  AttachmentId attachment_;
  std::optional<TableReader> table_;
  std::optional<WorkerSegmentWriter> segment_;
  UniqueFd wakeup_fd_;
  TokenKey token_key_{};
  std::uint64_t seq_ = 0;
  std::atomic<bool> writes_before_unmap_ = false;
  std::atomic<bool> settles_by_hand_ = false;
  std::vector<control::Responder> settling_;
  std::jthread thread_;
};

/// A worker in a process of its own, ready once this returns. It dies with the calling thread.
pid_t start_worker_process(const std::string& socket);

/// Likewise, in the middle of a unit that never ends.
pid_t start_stuck_worker(const std::string& socket);

}  // namespace leasehold
