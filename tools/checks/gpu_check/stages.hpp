/// The stages; each runs in a process of its own and writes its results to its report.
///
/// Errors: those that prevent the rest of the stage, such as NoDevice or DeviceUnsupported.
#pragma once

#include "common/child_process.hpp"
#include "tools/checks/gpu_check/card.hpp"
#include "tools/checks/gpu_check/settings.hpp"
#include "tools/checks/gpu_check/stage_report.hpp"

namespace leasehold::gpu_check {

/// Names of models in a bundle, without ".gguf".
inline constexpr const char* kDemoModel = "leasehold-stories-q8_0";
inline constexpr const char* kSmallestModel = "stories260K-q8_0";

/// Records the properties of the machine and the GPU.
Result<void> check_machine(const Settings& settings, StageReport& report);

/// Compares the bits of an F32 model's logits with the CPU's.
Result<void> check_bits(const Settings& settings, StageReport& report);

/// Checks whether processes can share GPU memory. If so, kills some of them in the middle of a
/// kernel that writes to memory that this process also holds.
Result<void> check_kills(const Settings& settings, StageReport& report);

/// Measures the time from a revocation to refusal, quiet, typed error and reuse.
Result<void> check_clocks(const Settings& settings, StageReport& report);

/// Measures the best rates of the GPU, and the rate at which a matmul of each format reads its
/// weights.
Result<void> check_bandwidth(const Settings& settings, StageReport& report);

/// Measures decode, batches and prefill with real shapes.
Result<void> check_speed(const Settings& settings, StageReport& report);

/// Finds out what the GPU supports.
Result<void> probe(const Settings& settings, StageReport& report);
Result<void> probe_sharing(const Settings& settings, StageReport& report, Card& card);
/// Measures how long it takes to clear memory in the way of the device agent.
Result<void> probe_clear(const Settings& settings, StageReport& report, Card& card);
Result<void> probe_conditional_nodes(StageReport& report, Card& card);
Result<void> probe_programmatic_edges(StageReport& report, Card& card);
Result<void> probe_wgmma(StageReport& report, Card& card);

/// Records clocks, power, temperature and throttle reasons from nvidia-smi, if it answers.
void record_card_state(const Settings& settings, StageReport& report, const Card& card,
                       const std::string& when);

/// Compares small models with their oracles, and runs the test programs of the bundle.
Result<void> check_correctness(const Settings& settings, StageReport& report);

/// Revokes the lease of one tenant in the middle of decoding.
Result<void> check_gate(const Settings& settings, StageReport& report);
Result<void> check_gate_as_threads(const Settings& settings, StageReport& report);

/// Moves blocks between the GPU and host memory, and revokes their lease meanwhile.
Result<void> check_swap(const Settings& settings, StageReport& report);

/// Runs a small model with single launches and with graphs, for the sanitizers.
Result<void> run_short(const Settings& settings, StageReport& report);
/// Runs steps of real shapes with few layers, for a profiler such as ncu.
Result<void> run_profile(const Settings& settings, StageReport& report);
Result<void> run_memcheck(const Settings& settings, StageReport& report);
Result<void> run_racecheck(const Settings& settings, StageReport& report);

/// Runs a program to its end; the orchestrator enforces the time limit. Returns its exit code, or
/// 128 + signal. Errors: those of Child.
Result<int> run_to_end(const ChildConfig& config);

/// Reads a whole file; empty if it cannot be read.
std::string text_of_file(const std::string& path);

/// True when the stage kills found that processes can share GPU memory, or did not run.
bool processes_share_memory(const Settings& settings);

}  // namespace leasehold::gpu_check
