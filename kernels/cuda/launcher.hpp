/// The launch door of a card: the only code that starts kernels, copies and graphs for a step.
///
/// Every launch is a unit: announce, poll, then put it into the stream. A poll covers the call of
/// the host alone, so three things see to what is queued already:
///   - at most `max_in_flight` launches are, each behind an event;
///   - whoever waits for them polls, and writes what he sees into the mirror, which every kernel
///     reads when it begins: enqueue_internal the stream, so that it reaches those that are queued;
///     the stream's next launch waits for it;
///   - DrainWatch tells who asks when all that could touch a lease is over.
///
/// Threads: one, the engine's, with the context current; `when_drained` any. Errors: the first
/// failure of the driver is kept as the fault; after it nothing is launched and nobody is live.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ipc/segment/thread_gate.hpp"
#include "kernels/cuda/device/gate.hpp"
#include "kernels/cuda/device_objects.hpp"
#include "kernels/cuda/drain_watch.hpp"
#include "kernels/cuda/kernel_launch.hpp"
#include "kernels/cuda/kernel_library.hpp"
#include "kernels/launch_status.hpp"

namespace leasehold::cuda {

/// Where a card says how far a running graph is: low half the segment, high half the epoch of the
/// mirror its gate has seen (device/step_params.hpp).
using GraphProgress = std::uint64_t;

class Launcher {
 public:
  struct Config {
    /// Launches in the stream at once. The fewer, the sooner a card is quiet; the host must stay
    /// ahead of the shortest kernels all the same.
    std::uint32_t max_in_flight = 8;
  };

  /// The gate's line, table and stop board, and the context, outlive it.
  static Result<std::unique_ptr<Launcher>> create(const Context& context, const ThreadGate& gate,
                                                  Config config);

  const device::GateMirror* mirror() const;
  /// Since it was asked last: kernels may have stopped in the middle, some blocks of one run and
  /// others not.
  bool take_stopped() { return std::exchange(was_stopped_, false); }
  GraphProgress* graph_progress() const;

  /// Of the step that begins: whom the gate finds live is written into the mirror.
  void begin(const GateSet& set);

  /// One unit: calls `enqueue(permit)` when anybody is left, with the mirror in order. What
  /// it returns, when not success, is the fault. Returns who was live.
  template <class Enqueue>
  LaunchStatus unit(const GateSet& set, UnitLabel label, std::string_view action,
                    Enqueue&& enqueue) {
    make_room(set, label);
    if (fault_) return {};
    const SequenceMask live = gate_.run(set, label, [&](const LaunchPermit& permit) {
      if (permit.live() != mirrored_live_) write_mirror(permit.live());
      record_failure(std::forward<Enqueue>(enqueue)(permit), action);
      note_issued();
    });
    if (live != mirrored_live_) write_mirror(live);
    return {fault_ ? SequenceMask{0} : live};
  }

  // What units and `enqueue_internal` put into the stream. The host's memory is pinned, or waited
  // for.
  CUresult enqueue(KernelLaunch& launch);
  CUresult copy_to_device(const void* to, const void* from, std::size_t size_bytes);
  CUresult copy_to_host(void* to, const void* from, std::size_t size_bytes);
  CUresult clear(const void* at, std::size_t size_bytes);
  CUresult upload(CUgraphExec graph);  ///< What a first replay would do otherwise.
  CUresult replay(CUgraphExec graph);

  /// Waits until no more than `newest` launches are in the stream, polling meanwhile.
  LaunchStatus wait_for_older(std::uint32_t newest, const GateSet& set, UnitLabel label);
  /// Waits until everything in the stream is over, polling meanwhile. Who was live at the end.
  LaunchStatus wait_all(const GateSet& set, UnitLabel label);
  /// Likewise where there is nobody to poll for.
  void wait_all();

  /// Work of the launcher's own enqueue_internal units, in the stream: clearing scratch, bringing
  /// results home.
  template <class Enqueue>
  void enqueue_internal(std::string_view action, Enqueue&& enqueue) {
    if (!fault_) record_failure(std::forward<Enqueue>(enqueue)(), action);
  }

  void when_drained(DrainWatch::Callback callback) { watch_.when_drained(std::move(callback)); }
  const std::optional<Error>& fault() const { return fault_; }
  void fail_with(Error error);
  std::uint64_t units_run() const { return gate_.units_run(); }
  KernelLibrary& library() { return library_; }
  const Context& context() const { return *context_; }

 private:
  struct Resources;
  Launcher(const Context& context, const ThreadGate& gate, Config config, Resources resources);

  void record_failure(CUresult result, std::string_view action);
  void make_room(const GateSet& set, UnitLabel label);
  void note_issued();
  /// True when something more is over since last time.
  bool collect_finished();
  void poll(const GateSet& set, UnitLabel label);
  void back_off();
  void write_mirror(SequenceMask live);

  const Context* context_;
  ThreadGate gate_;
  Config config_;
  KernelLibrary library_;
  Stream stream_;
  Stream side_stream_;
  DeviceBuffer mirror_;
  PinnedBuffer values_;  // [kValues] of what the mirror is to say: copies read them later
  PinnedBuffer graph_progress_;
  std::vector<Event> events_;  // [max_in_flight], of launch n at n mod that
  Event mirror_written_;       // the newest value is in the mirror
  Event end_;                  // of the stream, as it is now
  DrainWatch watch_;
  std::uint32_t epoch_ = 0;
  std::uint32_t next_value_ = 0;
  SequenceMask mirrored_live_ = 0;
  SequenceMask live_ = 0;
  bool was_stopped_ = false;
  std::uint32_t polls_ = 0;  // of the wait under way
  std::optional<Error> fault_;
};

}  // namespace leasehold::cuda
