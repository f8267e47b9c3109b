#include "worker/options.hpp"

#include <CLI/CLI.hpp>
#include <map>
#include <thread>

#include "ipc/segment_layout.hpp"

namespace leasehold {
namespace {

/// All cores, but one kept free for broker and tenants on a small machine.
std::uint32_t default_threads() {
  const std::uint32_t cores = std::max(1u, std::thread::hardware_concurrency());
  return cores <= 4 ? std::max(1u, cores - 1) : std::min(cores, kMaxGateThreads - 1);
}

const std::map<std::string, BackendChoice> kBackends{{"auto", BackendChoice::Auto},
                                                     {"cpu", BackendChoice::Cpu},
                                                     {"reference", BackendChoice::Reference}};
const std::map<std::string, KvType> kKvTypes{{"f16", KvType::F16}, {"f32", KvType::F32}};

}  // namespace

std::optional<WorkerOptions> parse_options(int argc, char** argv, int& exit_code) {
  WorkerOptions options;
  options.threads = default_threads();
  std::int64_t slow_motion_us = 0;
  CLI::App app("Serves one model to many tenants under leases that a broker can take back.");
  app.add_option("--broker", options.broker_socket, "Unix socket of leasehold-broker")->required();
  app.add_option("--model", options.model_path, "GGUF model file")->required();
  app.add_option("--listen", options.listen_path, "Unix socket for tenants; made here")->required();
  app.add_option("--name", options.name, "name of this worker")->capture_default_str();
  app.add_option("--backend", options.backend, "auto, cpu (AVX2) or reference")
      ->transform(CLI::CheckedTransformer(kBackends));
  app.add_option("--threads", options.threads, "compute threads; default: cores, or one less of 4")
      ->check(CLI::Range(1u, kMaxGateThreads - 1))
      ->capture_default_str();
  app.add_option("--kv-type", options.kv_type, "how keys and values are kept: f16 or f32")
      ->transform(CLI::CheckedTransformer(kKvTypes));
  app.add_option("--slow-motion-us", slow_motion_us,
                 "pause every unit of work this long, so that people can watch")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--log-level", options.log_level, "trace, debug, info, warn or error")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : 2;
    return std::nullopt;
  }
  options.slow_motion = std::chrono::microseconds(slow_motion_us);
  return options;
}

}  // namespace leasehold
