/// The only code that starts kernels, copies and graphs for a step on a card.
///
/// Every launch is a unit: announce, poll, enqueue. A poll covers the host's call only. Three
/// mechanisms cover work that is already queued:
///   - at most `max_in_flight` launches are queued, each followed by an event;
///   - a thread that waits for them polls and writes the result into the mirror, which every kernel
///     reads when it begins. The write uses a separate stream, so it reaches queued kernels; the
///     next launch of the main stream waits for it;
///   - SettleWatch reports when all launches that could touch a lease are over.
///
/// While another thread maps memory, which keeps the driver's locks, launches do not call the
/// driver: the launching thread polls until it gets the turn (ipc/cuda/driver_turn.hpp), before it
/// announces a unit. The write of a commit takes no turn: it may wait for the driver in its
/// announced unit.
///
/// Threads: one at a time, with the context current. While the engine thread only polls
/// (`poll_until`), the thread that builds a graph may call `library` and `upload`. Any thread may
/// call `when_settled`. Errors: the first failure of the driver is kept as the fault. After a fault
/// nothing is launched and no sequence is live.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ipc/segment/thread_gate.hpp"
#include "kernels/cuda/kernel_launch.hpp"
#include "kernels/cuda/kernel_library.hpp"
#include "kernels/cuda/launcher_mirror.hpp"
#include "kernels/cuda/settle_watch.hpp"
#include "kernels/launch_status.hpp"

namespace leasehold::cuda {

/// The progress of a running graph, written by the card: the segment in the low half, the epoch of
/// the mirror that the segment's gate has seen in the high half (device/step_params.hpp).
using GraphProgress = std::uint64_t;

/// Words in host memory that kernels write.
struct LaunchReports {
  GraphProgress graph = 0;
  /// The epoch that the newest matmul after attention has seen (device::report_tenant_seen).
  std::uint64_t tenant_seen = 0;
};

class Launcher {
 public:
  /// The context and the gate's worker segment, table and stop flags outlive it.
  static Result<std::unique_ptr<Launcher>> create(const Context& context, const ThreadGate& gate,
                                                  std::uint32_t max_in_flight);

  const device::GateMirror* mirror() const { return mirror_.address(); }
  /// LauncherMirror::take_stopped.
  bool take_stopped() { return mirror_.take_stopped(); }
  LaunchReports& reports() const { return *reinterpret_cast<LaunchReports*>(reports_.data()); }

  /// Begins a step: the mirror holds the sequences that the gate finds live.
  void begin(const GateSet& set);

  /// Runs one unit: updates the mirror and calls `enqueue(permit)` if any sequence is live. An
  /// error that `enqueue` returns becomes the fault. Returns the live sequences.
  template <class Enqueue>
  LaunchStatus unit(const GateSet& set, UnitLabel label, std::string_view action,
                    Enqueue&& enqueue) {
    make_room(set, label);
    const DriverTurn::Short turn = take_turn(set, label);
    if (fault_) return {};
    const SequenceMask live = gate_.run(set, label, [&](const LaunchPermit& permit) {
      if (permit.live() != mirror_.live()) write_mirror(permit.live());
      record_failure(std::forward<Enqueue>(enqueue)(permit), action);
      note_issued(label.touches);
    });
    if (live != mirror_.live()) write_mirror(live);
    return {fault_ ? SequenceMask{0} : live};
  }

  /// Runs one unit that only plans: `plan(permit)` enqueues nothing. Returns the live sequences.
  template <class Plan>
  LaunchStatus plan_unit(const GateSet& set, UnitLabel label, Plan&& plan) {
    if (fault_) return {};
    return {gate_.run(set, label, std::forward<Plan>(plan))};
  }

  // The operations that units and `enqueue_internal` put into the stream. Host memory is pinned, or
  // the caller waits for the copy.
  CUresult enqueue(KernelLaunch& launch);
  CUresult copy(void* to, const void* from, std::size_t size_bytes);  ///< Any kinds of memory.
  CUresult copy_to_device(const void* to, const void* from, std::size_t size_bytes);
  CUresult copy_to_host(void* to, const void* from, std::size_t size_bytes);
  CUresult upload(CUgraphExec graph);  ///< Otherwise the first replay uploads the graph.
  CUresult replay(CUgraphExec graph);

  /// Polls until this thread may call the driver.
  DriverTurn::Short take_turn(const GateSet& set, UnitLabel label);
  /// Polls until `is_done`, without a call of the driver. The next unit updates the mirror.
  /// Precondition: no launch is in the stream.
  void poll_until(const std::atomic<bool>& is_done, const GateSet& set, UnitLabel label);

  /// Polls and waits until at most `n` launches are in the stream.
  LaunchStatus wait_until_queued_at_most(std::uint32_t n, const GateSet& set, UnitLabel label);
  /// Polls and waits until the stream is empty. Returns the sequences still live at the end.
  LaunchStatus wait_all(const GateSet& set, UnitLabel label);
  /// Waits until the stream is empty, without polling.
  void wait_all();

  /// Enqueues the backend's own work outside units: zeroing scratch, copying results to the host.
  template <class Enqueue>
  void enqueue_internal(std::string_view action, Enqueue&& enqueue) {
    if (!fault_) record_failure(std::forward<Enqueue>(enqueue)(), action);
  }
  void zero(const std::byte* at, std::size_t size_bytes);
  void zero(const DeviceBuffer& buffer) { zero(buffer.data(), buffer.size_bytes()); }
  /// Allocates a buffer and enqueues its zeroing.
  Result<DeviceBuffer> zeroed_buffer(std::size_t size_bytes);

  void when_settled(SettleScope scope, SettleWatch::Callback callback) {
    watch_.when_settled(std::move(callback), scope);
  }
  const std::optional<Error>& fault() const { return fault_; }
  void fail_with(Error error);
  std::uint64_t units_run() const { return gate_.units_run(); }
  KernelLibrary& library() { return library_; }

 private:
  Launcher(const Context& context, const ThreadGate& gate, KernelLibrary library, Stream stream,
           LauncherMirror mirror)
      : context_(&context),
        gate_(gate),
        library_(std::move(library)),
        stream_(std::move(stream)),
        mirror_(std::move(mirror)) {}

  void record_failure(CUresult result, std::string_view action);
  void make_room(const GateSet& set, UnitLabel label);
  void note_issued(Touches touches);
  /// Returns true if more launches are over than at the last call.
  bool collect_finished();
  bool collect_and_poll(const GateSet& set, UnitLabel label);
  void poll(const GateSet& set, UnitLabel label);
  void back_off();
  void write_mirror(SequenceMask live);
  void read_reports();

  const Context* context_;
  ThreadGate gate_;
  KernelLibrary library_;
  Stream stream_;
  LauncherMirror mirror_;
  PinnedBuffer reports_;
  std::vector<Event> events_;  // [max_in_flight]; launch n has event n mod max_in_flight
  Event stream_end_;           // recorded after everything in the stream
  SettleWatch watch_;
  SequenceMask live_ = 0;
  std::uint32_t polls_ = 0;  // of the current wait
  std::optional<Error> fault_;
};

}  // namespace leasehold::cuda
