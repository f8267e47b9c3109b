#include "worker/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>

#include "common/cli/command_line.hpp"
#include "common/cli/config_file.hpp"
#include "common/cli/number_option.hpp"
#include "common/cli/size_option.hpp"
#include "common/cli/version.hpp"
#include "common/ids.hpp"
#include "common/machine/device_name.hpp"
#include "common/utf8.hpp"
#include "ipc/control/messages/worker.hpp"
#include "ipc/control/tokens/text_identity.hpp"
#include "ipc/segment/gate_set.hpp"
#include "ipc/segment/segment_layout.hpp"
#include "kernels/cpu/default_threads.hpp"
#include "kernels/model/architecture_keys.hpp"
#include "kernels/model/kv_type.hpp"
#include "worker/adapter_options.hpp"
#include "worker/batch_options.hpp"
#include "worker/draft_options.hpp"
#include "worker/http/host_name.hpp"
#include "worker/model_names.hpp"

namespace leasehold {
namespace {

// A GPU counts the rows of a step in 16 bits.
constexpr std::uint32_t kMaxTokenBudget = 16'384;
// Limits the rows with logits in a step.
constexpr std::uint32_t kMaxSpeculate = 32;
// The request pipeline holds no more requests than this, including running ones.
constexpr std::uint32_t kMaxWaiting = 4'000;

// Options are checked as text, so that help and errors show the text.
const std::map<std::string, BackendChoice> kBackends{{"auto", BackendChoice::Auto},
                                                     {"cpu", BackendChoice::Cpu},
                                                     {"reference", BackendChoice::Reference}};
const std::map<std::string, std::optional<Arithmetic>> kArithmetics{{"auto", std::nullopt},
                                                                    {"f32", Arithmetic::F32},
                                                                    {"int8", Arithmetic::Int8},
                                                                    {"f16", Arithmetic::F16}};

/// Options as given on the command line.
struct RawOptions {
  std::string backend = "auto";
  std::string simd = "auto";
  std::string kv_type = "f16";
  std::string arithmetic = "auto";
  std::string weights_scope = "model";
  std::string compute_cpus;
  std::string numa = "auto";
  std::string kv_index_url;
  std::string http;
  std::vector<std::string> http_trusted_proxies;
  std::vector<std::string> http_allowed_origins;
  std::string metrics;
  std::vector<std::string> metrics_hosts;
  std::string otlp_endpoint;
  bool http_any_address = false;
  CLI::Option* threads = nullptr;
  std::int64_t slow_motion_us = 0;
  std::int64_t broker_timeout_ms = 0;
  std::int64_t drain_timeout_ms = 0;
  std::int64_t idle_sleep_after_s = 0;
  std::int64_t http_idle_ttl_ms = 0;
  std::int64_t http_heartbeat_ms = 0;
};

void add_endpoint_options(CLI::App& app, WorkerOptions& options, RawOptions& raw) {
  app.add_option("--broker", options.broker_socket, "Unix socket of leasehold-broker")
      ->required()
      ->check(check_socket_path);
  app.add_option("--cell-socket", options.cell_socket,
                 "Socket of leasehold-cell, asked for keys that the broker does not know")
      ->check(check_socket_path);
  app.add_option("--model", options.model_path, "GGUF model file")->required();
  app.add_option(
         "--name-as", options.model_names,
         "Name of the model for clients, in place of the one in its file; further names are "
         "aliases; repeatable")
      ->check(check_model_name);
  app.add_option("--chat-template", options.chat_template_path,
                 "File with a Jinja template for chats, in place of the model's own")
      ->check(check_file_path);
  app.add_flag("--matryoshka", options.is_matryoshka,
               "Embeddings may ask for fewer dimensions; for models that were trained for it "
               "(Matryoshka Representation Learning)");
  app.add_option(
         "--cache-dir", options.cache_dir,
         "Directory that keeps the SHA-256 of model files, so that an unchanged file is not "
         "read for it at every start")
      ->envname("CACHE_DIRECTORY");
  app.add_option("--listen", options.listen_path, "Unix socket for tenants; the worker creates it")
      ->required()
      ->check(check_socket_path);
  app.add_option("--name", options.name, "Name of this worker")
      ->check(check_name)
      ->capture_default_str();
  add_number_option(
      app, "--broker-timeout-ms", raw.broker_timeout_ms,
      "How long to wait for a broker that has not started, or to return when it is lost", 0,
      3'600'000);
  add_number_option(
      app, "--drain-timeout-ms", raw.drain_timeout_ms,
      "Longest time requests may run after SIGTERM; 0 ends them at once; extends systemd's "
      "TimeoutStopSec to this plus 15 s",
      0, 3'600'000);
  add_number_option(
      app, "--idle-sleep-after", raw.idle_sleep_after_s,
      "Seconds without a request after which the worker gives the memory of its weights back; the "
      "next request restores them; 0 means never",
      0, 86'400);
  app.add_option("--kv-index-url", raw.kv_index_url,
                 "URL of the index to notify of ended requests, such as http://127.0.0.1:8765")
      ->envname("CONTEXTPILOT_INDEX_URL");
  app.add_option("--http", raw.http,
                 "Serve OpenAI's API here, such as 127.0.0.1:8080 or /run/leasehold/http.sock");
  app.add_option("--host-name", options.host_name,
                 "Name of this host in the answers of --http, by which gateways tell hosts apart; "
                 "default: the machine's host name")
      ->check(http::check_host_name);
  add_number_option(app, "--http-idle-ttl-ms", raw.http_idle_ttl_ms,
                    "How long the lease of an API key, with its cached prompts, is kept after the "
                    "key's last request",
                    0, 3'600'000);
  add_number_option(
      app, "--http-heartbeat-ms", raw.http_heartbeat_ms,
      "How long a stream may send nothing before it sends a comment, so that proxies do "
      "not end it; 0 means for ever",
      0, 3'600'000);
  app.add_option("--http-allow-origin", raw.http_allowed_origins,
                 "Let browsers give pages of this origin answers of --http, such as "
                 "https://chat.example, or * for all; repeatable");
  app.add_option("--http-trusted-proxy", raw.http_trusted_proxies,
                 "Proxy whose X-Forwarded-For names the client: an address, a network such as "
                 "10.0.0.0/8, or uid:33 for a user on a Unix socket; repeatable");
  app.add_option("--metrics", raw.metrics,
                 "Serve metrics for Prometheus here, without a key, such as 127.0.0.1:9464");
  app.add_option("--metrics-host", raw.metrics_hosts,
                 "Answer requests to --metrics for this name too, not only for IP addresses and "
                 "localhost; repeatable");
  app.add_flag("--http-any-address", raw.http_any_address,
               "Allow --http and --metrics on addresses that other machines reach, without "
               "encryption");
}

/// Options that determine where compute threads run.
void add_placement_options(CLI::App& app, RawOptions& raw) {
  app.add_option("--compute-cpus", raw.compute_cpus,
                 "Cores for compute threads only, such as 1 or 2-7");
  app.add_option("--numa", raw.numa,
                 "Spread compute threads and weights over NUMA nodes (auto), or leave both to the "
                 "system (off); never changes a text")
      ->check(CLI::IsMember({"auto", "off"}))
      ->capture_default_str();
}

void add_compute_options(CLI::App& app, WorkerOptions& options, RawOptions& raw) {
  app.add_option("--device", options.device,
                 "Device whose memory the broker lends; cpu and cuda:N fail on another device")
      ->check(check_device)
      ->capture_default_str();
  app.add_option("--backend", raw.backend, "CPU backend; reference runs plain loops on one thread")
      ->check(CLI::IsMember({"auto", "cpu", "reference"}))
      ->capture_default_str();
  app.add_option("--simd", raw.simd, "SIMD path of the cpu backend; all give the same bits")
      ->check(CLI::IsMember({"auto", "scalar", "avx2", "avx-vnni", "avx512", "amx", "neon"}))
      ->capture_default_str();
  raw.threads = add_number_option(
      app, "--threads", options.threads,
      "Compute threads; default: one per core of --compute-cpus or of this process, "
      "fewer with a CPU quota (cgroup v2)",
      1u, kMaxGateThreads - 1);
  add_placement_options(app, raw);
  app.add_option("--kv-type", raw.kv_type,
                 "Element type of the KV cache; q8_0 rounds keys and values and takes about half "
                 "the memory of f16")
      ->check(CLI::IsMember(kv_type_names()))
      ->capture_default_str();
  app.add_option("--arithmetic", raw.arithmetic,
                 "How matrices are multiplied; int8 rounds activations and is faster, f32 does "
                 "not, f16 rounds all factors and needs a card; auto is int8 if all quantised "
                 "weights allow it, otherwise f16 on a card and f32 on a CPU")
      ->check(CLI::IsMember({"auto", "f32", "int8", "f16"}))
      ->capture_default_str();
  app.add_option("--weights-scope", raw.weights_scope,
                 "What one engine lease covers; a finer scope loses less with each lease")
      ->check(CLI::IsMember({"model", "layer", "tensor"}))
      ->capture_default_str();
  app.add_flag("--mlock", options.mlock,
               "Lock the weights in memory, so that they are never swapped out; needs an "
               "RLIMIT_MEMLOCK of at least their size");
}

void add_limit_options(CLI::App& app, SchedulerLimits& limits) {
  add_number_option(app, "--max-batch-size", limits.max_batch_size, "Sequences in one step", 1u,
                    kMaxStepSequences);
  add_number_option(app, "--token-budget", limits.token_budget,
                    "Tokens in one step, prompts included; at least the batch size", 1u,
                    kMaxTokenBudget);
  add_number_option(app, "--speculate", limits.speculate,
                    "Most tokens proposed per sequence and step, from repeats in its text or by "
                    "--draft-model; never changes a text; 0 means none",
                    0u, kMaxSpeculate);
  app.add_option("--max-context", limits.max_context,
                 "Tokens of one request, prompt and answer; default: the model's context")
      ->check(CLI::Range(2u, kMaxContext));
  add_number_option(
      app, "--max-waiting", limits.max_waiting,
      "Most requests that wait for the batch; beyond its tenant's share a request gets "
      "QueueFull",
      1u, kMaxWaiting);
  add_number_option(app, "--max-waiting-per-lease", limits.max_waiting_per_lease,
                    "Requests of one lease that wait; one more is refused with QuotaConcurrent", 1u,
                    kMaxWaiting);
}

/// Options that apply on a GPU only.
void add_cuda_options(CLI::App& app, WorkerOptions& options) {
  app.add_option("--graphs", options.graphs,
                 "CUDA graphs for decoding steps; gated ones can stop inside a step")
      ->check(CLI::IsMember({"none", "plain", "gated"}))
      ->capture_default_str();
  add_number_option(app, "--graph-segment-layers", options.graph_segment_layers,
                    "Layers between two gates of a CUDA graph", 1u, 1024u);
  add_number_option(app, "--max-in-flight", options.max_in_flight,
                    "Launches queued on a GPU; fewer make a revocation faster", 1u, 64u);
}

void add_trace_options(CLI::App& app, WorkerOptions& options, RawOptions& raw) {
  app.add_option("--otlp-endpoint", raw.otlp_endpoint,
                 "Send traces of requests to this OpenTelemetry collector, as JSON over HTTP, such "
                 "as http://127.0.0.1:4318");
  app.add_option("--otlp-sample", options.otlp_sample,
                 "Share of requests without a traceparent that are traced, 0 to 1; the sampled "
                 "flag of a traceparent decides for its request")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--otlp-service-name", options.otlp_service_name, "Name of the service in traces")
      ->check(check_name)
      ->capture_default_str();
}

void add_observability_options(CLI::App& app, WorkerOptions& options, RawOptions& raw) {
  add_number_option(app, "--slow-motion-us", raw.slow_motion_us,
                    "Pause every unit of work this long, so that people can watch", 0, 1'000'000);
  app.add_option("--log-level", options.log_level, "Least severe level to log")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}))
      ->capture_default_str();
  app.add_option("--event-log", options.event_log, "File that every committed step is appended to")
      ->check(check_file_path);
  add_size_option(app, "--event-log-bytes", options.event_log_bytes,
                  "Size at which the event log is renamed to FILE.1, where FILE is its path, and a "
                  "new one begins, for example 256MiB",
                  {.low = 64ull << 10, .high = 1ull << 40})
      ->default_str("256MiB");
}

Result<void> check_token_budget(const SchedulerLimits& limits) {
  if (limits.token_budget >= limits.max_batch_size) return {};
  return fail(Errc::BadRequest,
              fmt::format("--token-budget is {0}, and a step needs one token for each of "
                          "--max-batch-size {1} sequences; use a budget of at least {1} or a batch "
                          "size of at most {0}",
                          limits.token_budget, limits.max_batch_size));
}

/// The value of an option, or its error with the option's name.
template <class Value>
Result<Value> value_of(std::string_view option, Result<Value> parsed) {
  if (parsed) return parsed;
  return fail(parsed.error().code, fmt::format("{}: {}", option, parsed.error().detail));
}

Result<std::optional<http::Url>> url_of(std::string_view option, const std::string& text) {
  if (text.empty()) return std::nullopt;
  return TRY(value_of(option, http::Url::parse(text)));
}

Result<std::optional<http::Address>> address_of(std::string_view option, const std::string& text,
                                                bool any_address) {
  if (text.empty()) return std::nullopt;
  return TRY(value_of(option, http::Address::parse(text, any_address)));
}

/// Resolves --compute-cpus. Without --threads there is one thread for each of these cores.
Result<void> resolve_compute_cpus(const RawOptions& raw, WorkerOptions& options) {
  if (raw.compute_cpus.empty()) return {};
  const CpuSet cpus = TRY(value_of("--compute-cpus", CpuSet::parse(raw.compute_cpus)));
  if (!cpus.is_usable()) {
    return fail(Errc::BadRequest, "--compute-cpus: this process may not use all the cores " +
                                      raw.compute_cpus + "; `lscpu` lists those that exist");
  }
  options.compute_cpus = cpus;
  if (raw.threads->count() > 0) return {};
  options.threads = default_threads(usable_cpu(cpus));
  raw.threads->default_str(std::to_string(options.threads));
  return {};
}

Result<void> resolve_options(const RawOptions& raw, WorkerOptions& options) {
  options.slow_motion = std::chrono::microseconds(raw.slow_motion_us);
  options.broker_timeout = std::chrono::milliseconds(raw.broker_timeout_ms);
  options.drain_timeout = std::chrono::milliseconds(raw.drain_timeout_ms);
  options.idle_sleep_after = std::chrono::seconds(raw.idle_sleep_after_s);
  options.http_idle_ttl = std::chrono::milliseconds(raw.http_idle_ttl_ms);
  options.http_heartbeat = std::chrono::milliseconds(raw.http_heartbeat_ms);
  options.backend = kBackends.at(raw.backend);
  options.simd = simd_path_from_name(raw.simd);
  options.kv_type = *kv_type_from_name(raw.kv_type);
  options.arithmetic = kArithmetics.at(raw.arithmetic);
  options.weights_scope = *weights_scope_from_name(raw.weights_scope);
  options.spread_over_nodes = raw.numa == "auto";
  if (!options.adapters_dir.empty()) options.limits.max_adapter_rank = options.max_adapter_rank;
  TRY(check_token_budget(options.limits));
  TRY(check_draft(options));
  TRY(check_model_names(options.model_names));
  options.kv_index = TRY(url_of("--kv-index-url", raw.kv_index_url));
  options.otlp = TRY(url_of("--otlp-endpoint", raw.otlp_endpoint));
  options.http = TRY(address_of("--http", raw.http, raw.http_any_address));
  TRY(resolve_batch_options(options));
  options.http_trusted_proxies =
      TRY(value_of("--http-trusted-proxy", http::TrustedProxies::parse(raw.http_trusted_proxies)));
  options.http_allowed_origins =
      TRY(value_of("--http-allow-origin", http::AllowedOrigins::parse(raw.http_allowed_origins)));
  if (options.host_name.empty()) options.host_name = http::machine_host_name();
  options.metrics = TRY(address_of("--metrics", raw.metrics, raw.http_any_address));
  if (options.metrics)
    options.metrics_hosts = http::HostRule::at(*options.metrics, raw.metrics_hosts);
  return resolve_compute_cpus(raw, options);
}

}  // namespace

std::optional<WorkerOptions> parse_options(int argc, char** argv, int& exit_code) {
  WorkerOptions options;
  options.threads = default_threads(usable_cpu());
  RawOptions raw{.broker_timeout_ms = options.broker_timeout.count(),
                 .drain_timeout_ms = options.drain_timeout.count(),
                 .http_idle_ttl_ms = options.http_idle_ttl.count(),
                 .http_heartbeat_ms = options.http_heartbeat.count()};
  CLI::App app("Serve one model to many tenants under leases that a broker can revoke",
               "leasehold-worker");
  app.set_version_flag("--version", "leasehold-worker " + std::string(version()));
  add_config_options(app);
  add_endpoint_options(app, options, raw);
  add_compute_options(app, options, raw);
  add_limit_options(app, options.limits);
  add_draft_options(app, options);
  add_adapter_options(app, options);
  add_cuda_options(app, options);
  add_observability_options(app, options, raw);
  add_batch_options(app, options);
  add_trace_options(app, options, raw);
  if (const auto ended = parse_command_line(app, argc, argv)) {
    exit_code = *ended;
    return std::nullopt;
  }
  if (const Result<void> resolved = resolve_options(raw, options); !resolved) {
    exit_code = print_error(app.get_name(), {.text = resolved.error().detail});
    return std::nullopt;
  }
  if (const auto ended = finish_config(app)) {
    exit_code = *ended;
    return std::nullopt;
  }
  if (auto values = config_values(app)) options.config = *std::move(values);
  // The broker passes this path to tenants in other working directories.
  if (!options.listen_path.empty()) {
    options.listen_path = std::filesystem::absolute(options.listen_path).string();
  }
  return options;
}

}  // namespace leasehold
