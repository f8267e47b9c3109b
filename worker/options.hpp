/// Command line of leasehold-worker.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "common/cpu_set.hpp"
#include "kernels/cpu/row_kernels.hpp"
#include "kernels/op_args.hpp"
#include "worker/model/weights_plan.hpp"

namespace leasehold {

enum class BackendChoice : std::uint8_t { Auto, Cpu, Reference };

struct WorkerOptions {
  std::string broker_socket;
  std::string name = "worker";
  std::string model_path;
  std::string listen_path;
  BackendChoice backend = BackendChoice::Auto;
  std::optional<SimdPath> simd;  ///< Nothing: the widest the CPU has.
  std::uint32_t threads = 1;
  CpuSet compute_cpus;  ///< Empty: compute threads run anywhere.
  KvType kv_type = KvType::F16;
  WeightsScope weights_scope = WeightsScope::Model;
  std::chrono::microseconds slow_motion{0};
  std::chrono::milliseconds broker_patience{30'000};
  std::string log_level = "info";
  std::string event_log;  ///< Empty: none.
};

/// Nothing when the program should end now with `exit_code` (help, wrong usage).
std::optional<WorkerOptions> parse_options(int argc, char** argv, int& exit_code);

}  // namespace leasehold
