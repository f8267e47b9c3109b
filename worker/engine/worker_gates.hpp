/// Creates the gates of one worker process. Each gate uses the worker segment, the revocation
/// counter and the stop flags.
#pragma once

#include <memory>
#include <vector>

#include "common/ids.hpp"
#include "ipc/segment/thread_gate.hpp"
#include "ipc/table/table_reader.hpp"
#include "ipc/table/worker_segment.hpp"

namespace leasehold {

/// What every gate of this process uses; all of it outlives the gates.
struct GateDependencies {
  WorkerId worker;
  const TableReader* table = nullptr;
  const WorkerSegmentWriter* segment = nullptr;
  const StopFlags* stops = nullptr;
  GateProbe* probe = nullptr;  ///< May be null.
};

/// Creates gates for threads `first` … `first + count - 1` of the worker segment.
std::vector<ThreadGate> make_gates(const GateDependencies& dependencies, std::uint32_t first,
                                   std::uint32_t count);

/// A listener for gate sets whose refusals need no report.
class NullRefusalListener final : public RefusalListener {
 public:
  void refused(const GateRefusal&) noexcept override {}
  void refusing_unit_ended() noexcept override {}
};

/// Contains the fault point between the poll and the run of a unit, and pauses every unit there
/// except weight loads, for demonstrations in slow motion. Threads: any.
class UnitProbe final : public GateProbe {
 public:
  explicit UnitProbe(std::chrono::microseconds slow_motion) : slow_motion_(slow_motion) {}
  void unit_polled(std::uint32_t thread, LaunchSite site, std::uint16_t layer,
                   SequenceMask live) override;

 private:
  std::chrono::microseconds slow_motion_;
};

}  // namespace leasehold
