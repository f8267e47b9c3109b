/// Command line of leasehold-worker.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/cli/config_reload.hpp"
#include "common/machine/cpu_set.hpp"
#include "ipc/control/event_file.hpp"
#include "ipc/http/http_address.hpp"
#include "ipc/http/http_host.hpp"
#include "ipc/http/http_url.hpp"
#include "ipc/http/trusted_proxies.hpp"
#include "kernels/cpu/row_kernels.hpp"
#include "kernels/kv_layout.hpp"
#include "kernels/model/weights_plan.hpp"
#include "worker/batch/batch_store.hpp"
#include "worker/http/cross_origin.hpp"
#include "worker/schedule/scheduler.hpp"

namespace leasehold {

/// The CPU backends; a GPU has only one backend.
enum class BackendChoice : std::uint8_t { Auto, Cpu, Reference };

struct WorkerOptions {
  std::string broker_socket;
  std::string cell_socket;  ///< Of leasehold-cell; empty: this host is in no cell.
  std::string name = "worker";
  std::string model_path;
  std::vector<std::string> model_names;  ///< Empty: the name in the file. The first is shown.
  std::string chat_template_path;        ///< Empty: the model's own chat template.
  std::string draft_model_path;          ///< Empty: no draft model.
  /// Longest text, in tokens, that the draft model processes.
  std::uint32_t draft_context = 2'048;
  std::string adapters_dir;  ///< Directory of adapters' files; empty: no adapters.
  std::uint32_t max_adapter_rank = 64;
  std::string cache_dir;        ///< Directory for digests of model files; empty: none are kept.
  std::string listen_path;      ///< Unix socket for tenants; parse_options makes it absolute.
  std::string device = "auto";  ///< "auto", "cpu", "cuda:N"
  BackendChoice backend = BackendChoice::Auto;
  std::optional<SimdPath> simd;   ///< Not set: the fastest path of the CPU.
  std::uint32_t threads = 1;      ///< Threads of the backend: 1 to kMaxGateThreads - 1.
  CpuSet compute_cpus;            ///< Empty: compute threads run anywhere.
  bool spread_over_nodes = true;  ///< Spread compute threads and weights over NUMA nodes.
  KvType kv_type = KvType::F16;
  std::optional<Arithmetic> arithmetic;  ///< Not set: chosen by the model and the device.
  WeightsScope weights_scope = WeightsScope::Model;
  bool is_matryoshka = false;    ///< See EmbeddingModel.
  bool mlock = false;            ///< Lock the weights in memory.
  std::string graphs = "gated";  ///< "none", "plain", "gated": for decoding steps on a GPU.
  std::uint32_t graph_segment_layers = 4;    ///< Layers between two gates of a graph: 1 to 1024.
  SchedulerLimits limits;                    ///< `max_context` 0: the model's.
  std::uint32_t max_in_flight = 8;           ///< Launches queued on a GPU.
  std::chrono::microseconds slow_motion{0};  ///< Pause of every unit: 0 to 1 s.
  std::chrono::milliseconds broker_timeout{30'000};
  std::chrono::milliseconds drain_timeout{30'000};
  std::chrono::seconds idle_sleep_after{0};  ///< 0: only an operator puts the worker to sleep.
  std::string log_level = "info";
  std::string event_log;  ///< Empty: no event log.
  std::uint64_t event_log_bytes = events::EventFile::kDefaultMaxBytes;
  std::optional<http::Url> kv_index;
  std::optional<http::Address> http;
  std::string host_name;  ///< Names this machine in answers of `http`.
  std::chrono::milliseconds http_idle_ttl{30'000};
  http::TrustedProxies http_trusted_proxies;
  http::AllowedOrigins http_allowed_origins;
  std::chrono::milliseconds http_heartbeat{15'000};  ///< 0: none.
  std::string batch_dir;                             ///< Empty: no files and no batches.
  batch::StoreLimits batch_limits;
  std::uint32_t batch_keep_hours = 720;
  std::optional<http::Address> metrics;
  http::HostRule metrics_hosts;
  std::optional<http::Url> otlp;  ///< The collector of traces.
  double otlp_sample = 1.0;       ///< Share of the traces that begin here: 0 to 1.
  std::string otlp_service_name = "leasehold-worker";
  ConfigValues config;  ///< All options above, as text.
};

/// Returns nothing when the program should end with `exit_code` (help, wrong usage).
std::optional<WorkerOptions> parse_options(int argc, char** argv, int& exit_code);

}  // namespace leasehold
