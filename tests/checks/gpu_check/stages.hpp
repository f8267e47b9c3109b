/// The stages, and the orchestrator that runs them.
///
/// Each stage runs in a separate process with a share of the time and writes its results to its
/// report. The orchestrator prints lines as they arrive and writes one report after every stage.
/// The report names a stage that fails, dies or exceeds its time; the other stages still run.
///
/// Errors of a stage: those that prevent the rest of it, such as NoDevice or DeviceUnsupported.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "common/machine/child_process.hpp"
#include "tests/checks/gpu_check/card.hpp"
#include "tests/checks/gpu_check/stage_report.hpp"

namespace leasehold::gpu_check {

/// The options of leasehold-gpu-check.
struct Settings {
  std::string bin_dir;    ///< Directory of the programs and the test programs.
  std::string model_dir;  ///< Models with their oracle files (NAME.json).
  std::string out_dir;    ///< For the report and the logs of the stages.
  std::string only;       ///< Comma-separated stages; empty: all.
  std::string peer_dir;   ///< Directory of llama.cpp's programs; empty: none.
  double minutes = 9;
  int ordinal = 0;    ///< Index of the GPU.
  bool tiny = false;  ///< Shapes for a driver that computes on the CPU.
};

inline constexpr int kChecksFailed = 1;

/// "machine, bits, …": every stage, in the order of execution.
std::string stage_names();

/// Error text for comma-separated names that include an unknown stage; empty when all are known.
std::string check_stages(const std::string& names);

/// Returns the exit code: 0, kChecksFailed, or that of an error (NoDevice …) that prevents every
/// stage. Errors: SystemError when the report cannot be written.
Result<int> orchestrate(const Settings& settings, std::ostream& out);

/// Runs one stage in this process and returns the exit code.
int run_stage(const Settings& settings, const std::string& stage);

/// Models of a bundle, without ".gguf".
inline constexpr const char* kDemoModel = "leasehold-stories-q8_0";
inline constexpr const char* kSmallestModel = "stories260K-q8_0";

/// Describes the machine and the GPU.
Result<void> check_machine(const Settings& settings, StageReport& report);

/// Compares the bits of an F32 model's logits with the CPU's.
Result<void> check_bits(const Settings& settings, StageReport& report);

/// Checks whether processes can share GPU memory. If they can, kills some of them in the middle of
/// a kernel that writes to memory which this process holds, too.
Result<void> check_kills(const Settings& settings, StageReport& report);

/// Measures the time from a revocation to refusal, quiet, typed error and reuse.
Result<void> check_clocks(const Settings& settings, StageReport& report);

/// Measures the best rates of the GPU, and the rate at which a matmul of each format reads its
/// weights.
Result<void> check_bandwidth(const Settings& settings, StageReport& report);

/// Measures decoding, batches and prefill of real shapes.
Result<void> check_speed(const Settings& settings, StageReport& report);

/// Counts the launches of a layer and measures each of them within a graph.
Result<void> check_launches(const Settings& settings, StageReport& report);

/// Runs peers.py, which times PyTorch's kernels, and compares with the stage speed if it ran.
Result<void> check_peers(const Settings& settings, StageReport& report);

/// Runs llama.py, which times llama.cpp's programs, and compares as check_peers does. It runs only
/// with a directory of these programs.
Result<void> check_llama(const Settings& settings, StageReport& report);

/// Finds out what the GPU supports.
Result<void> probe(const Settings& settings, StageReport& report);
Result<void> probe_sharing(const Settings& settings, StageReport& report, Card& card);
/// Measures how long clearing memory takes, as the device agent does it.
Result<void> probe_clear(const Settings& settings, StageReport& report, Card& card);
Result<void> probe_conditional_nodes(StageReport& report, Card& card);
Result<void> probe_programmatic_edges(StageReport& report, Card& card);
Result<void> probe_wgmma(StageReport& report, Card& card);

/// Records clocks, power, temperature and reasons for throttling, if nvidia-smi reports them.
void record_card_state(const Settings& settings, StageReport& report, const Card& card,
                       const std::string& when);

/// Compares small models with their oracles, and runs the test programs of the bundle.
Result<void> check_correctness(const Settings& settings, StageReport& report);

/// Revokes the lease of one tenant in the middle of decoding.
Result<void> check_gate(const Settings& settings, StageReport& report);
Result<void> check_gate_as_threads(const Settings& settings, StageReport& report);

/// Moves blocks between the GPU and host memory, and revokes their lease during a copy.
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

/// Returns an empty text for a file that cannot be read.
std::string text_of_file(const std::string& path);

/// True if the stage kills found that processes can share GPU memory, or if that stage did not run.
bool processes_share_memory(const Settings& settings);

}  // namespace leasehold::gpu_check
