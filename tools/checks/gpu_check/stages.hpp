/// The stages, each in a process of its own. What one finds stands in its report; an error is what
/// owner it from going on.
///
/// Errors: NoDevice, DeviceUnsupported and the like where there is no card to ask.
#pragma once

#include "tools/checks/gpu_check/card.hpp"
#include "tools/checks/gpu_check/settings.hpp"
#include "tools/checks/gpu_check/stage_report.hpp"

namespace leasehold::gpu_check {

struct StageRow {
  const char* name;
  Result<void> (*run)(const Settings& settings, StageReport& report);
  double share_of_time;  ///< What others leave over is added to the next.
};

/// In the order they run.
std::span<const StageRow> stages();

/// What the machine and the card allow.
Result<void> probe(const Settings& settings, StageReport& report);
void probe_machine(StageReport& report);
Result<void> probe_sharing(const Settings& settings, StageReport& report, Card& card);
Result<void> probe_conditional_nodes(StageReport& report, Card& card);
Result<void> probe_wgmma(StageReport& report, Card& card);

/// Small models along their oracles' tokens, and the test programs of the bundle.
Result<void> check_correctness(const Settings& settings, StageReport& report);

/// One tenant loses its lease in the middle of decoding.
Result<void> check_gate(const Settings& settings, StageReport& report);
Result<void> check_gate_as_threads(const Settings& settings, StageReport& report);

/// A small model, once through single launches and once through graphs: what sanitizers watch.
Result<void> run_short(const Settings& settings, StageReport& report);
Result<void> run_memcheck(const Settings& settings, StageReport& report);
Result<void> run_racecheck(const Settings& settings, StageReport& report);

Result<void> bench(const Settings& settings, StageReport& report);

/// Whether the probe of this run found that processes can share a card's memory; true when there
/// was no probe.
bool processes_share_memory(const Settings& settings);

}  // namespace leasehold::gpu_check
