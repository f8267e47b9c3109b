#include "tests/checks/bench/http_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "common/random.hpp"
#include "common/trace_context.hpp"
#include "ipc/client/lease_holder.hpp"
#include "ipc/control/tokens/api_key.hpp"
#include "kernels/model/config.hpp"
#include "kernels/model/gguf/gguf.hpp"
#include "tests/checks/bench/batch_load.hpp"
#include "tests/checks/bench/engine_bench.hpp"
#include "tests/checks/bench/figures.hpp"
#include "tests/checks/bench/light_stream.hpp"
#include "tests/checks/bench/run_queue.hpp"
#include "tests/checks/bench/sse_stream.hpp"
#include "tests/checks/bench/system.hpp"
#include "tests/checks/bench/tenant_pool.hpp"
#include "tests/checks/bench/thread_time.hpp"
#include "tests/checks/bench/trace_sink.hpp"

namespace leasehold::bench {
namespace {

using Json = nlohmann::json;

constexpr Duration kTimeout = std::chrono::minutes(2);
constexpr Duration kPollTime = std::chrono::milliseconds(100);
constexpr std::uint32_t kWarmUp = 20;
constexpr std::uint32_t kStreamTokens = 200;
constexpr std::uint32_t kEndlessTokens = 1'000;  // more than are generated before a revocation
constexpr std::uint64_t kTokensBeforeRevocation = 3;
constexpr std::uint32_t kPromptTokens = 4;
constexpr const char* kComputeThreads[] = {"main"};  // the worker's threads that compute
constexpr std::uint32_t kBatchLines = 10'000;
/// One core is left to the clients and to the other threads.
std::uint32_t compute_threads() {
  return std::max(2u, std::thread::hardware_concurrency()) - 1;
}

const TenantId kTenant{"http"};
const TenantId kBatchTenant{"batch"};

/// The results that the streams of a measurement have read.
struct Seen {
  std::uint64_t tokens = 0;
  std::uint32_t ended = 0;
  std::optional<TimePoint> ended_at{};
  std::optional<Error> error{};
};

class HttpBench {
 public:
  explicit HttpBench(const HttpBenchConfig& config) : config_(config) {}

  Result<Json> measure() {
    TRY(start());
    TRY(measure_latency());
    TRY(measure_throughput());
    TRY(measure_revocations());
    const FigureRow rows[] = {
        {"latency_us.socket"},
        {"latency_us.http"},
        {"throughput.socket_tokens_per_s", Statistic::Median},
        {"throughput.http_tokens_per_s", Statistic::Median},
        {"throughput.traced_tokens_per_s", Statistic::Median},
        {"throughput.batch_tokens_per_s", Statistic::Median},
        {"throughput.batch_lines_per_round", Statistic::Median},
        {"throughput.engine_tokens_per_s", Statistic::Median},
        {"throughput.share_of_engine", Statistic::Median, "throughput.http_undisturbed_per_s",
         "throughput.engine_tokens_per_s"},
        {"throughput.socket_cpu_us_per_token", Statistic::Median},
        {"throughput.http_cpu_us_per_token", Statistic::Median},
        {"revoke_us.socket"},
        {"revoke_us.http"}};
    Json json;
    add_figures(json, samples_, rows);
    for (const std::string times : {"latency_us", "revoke_us"})
      json[times]["added_p50"] =
          figure_of(samples_, times + ".http") - figure_of(samples_, times + ".socket");
    json["throughput"]["streams"] = config_.streams;
    json["throughput"]["loss_percent"] = loss_percent("tokens_per_s", Path::Socket, Path::Http);
    json["throughput"]["undisturbed_loss_percent"] =
        loss_percent("undisturbed_per_s", Path::Socket, Path::Http);
    json["throughput"]["traced_loss_percent"] =
        loss_percent("tokens_per_s", Path::Http, Path::Traced);
    json["throughput"]["traced_undisturbed_loss_percent"] =
        loss_percent("undisturbed_per_s", Path::Http, Path::Traced);
    json["throughput"]["batch_loss_percent"] =
        loss_percent("tokens_per_s", Path::Http, Path::Batch);
    return json;
  }

 private:
  enum class Path { Socket, Http, Traced, Batch };
  static constexpr Path kPaths[] = {Path::Socket, Path::Http};
  static const char* name_of(Path path) {
    if (path == Path::Traced) return "traced";
    if (path == Path::Batch) return "batch";
    return path == Path::Socket ? "socket" : "http";
  }

  Result<void> start() {
    const GgufFile file = TRY(GgufFile::open(config_.model_path));
    model_ = TRY(read_config(file)).name;
    directory_.emplace(TRY(TemporaryDirectory::create("http-bench")));
    http_path_ = directory_->path() / "http.sock";
    // Only requests with a sampled traceparent are traced.
    std::vector<std::string> options = {"--http",
                                        http_path_,
                                        "--http-idle-ttl-ms",
                                        "60000",
                                        "--otlp-endpoint",
                                        sink_.url(),
                                        "--otlp-sample",
                                        "0",
                                        "--batch-dir",
                                        directory_->file("batches")};
    if (!config_.simd.empty()) options.insert(options.end(), {"--simd", config_.simd});
    system_ = TRY(System::start({.bin_dir = config_.bin_dir,
                                 .model_path = config_.model_path,
                                 .threads = compute_threads(),
                                 .broker_options = {},
                                 .worker_options = std::move(options)}));
    TRY(system_->admit(kTenant.value, 1, config_.streams));
    key_ = TRY(system_->create_key(kTenant.value));
    TRY(system_->admit(kBatchTenant.value, 1, config_.streams));
    const std::string batch_key = TRY(system_->create_key(kBatchTenant.value));
    batch_.emplace(TRY(BatchLoad::create(http_path_, batch_key, kBatchLines)));
    return acquire();
  }

  /// Acquires a lease for the socket's path. Releases the previous lease.
  Result<void> acquire() {
    if (!holder_) {
      holder_ = client::LeaseHolder::create(
          io_, timers_, system_->broker_socket(),
          {.on_lost = [](const Error&) {}, .on_revoked = [](const wire::LeaseRevoked&) {}});
    }
    std::optional<Result<wire::LeaseAcquired>> result;
    holder_->acquire({.tenant = kTenant, .request_id = {mint_request_id()}},
                     [&result](Result<wire::LeaseAcquired> done) { result = std::move(done); });
    TRY(run_until([&] { return result.has_value(); }));
    lease_ = TRY(*std::move(result));
    return {};
  }

  Result<void> run_until(const std::function<bool()>& holds) {
    const TimePoint deadline = timers_.now() + kTimeout;
    while (!holds()) {
      io_.restart();
      io_.run_one_for(kPollTime);
      if (timers_.now() > deadline) return fail(Errc::TimedOut, "a request did not end");
    }
    return {};
  }

  void note_end(Seen& seen, const Result<void>& how) {
    seen.ended_at = timers_.now();
    ++seen.ended;
    if (!how) seen.error = how.error();
  }

  /// `seen` outlives the stream.
  Result<std::shared_ptr<LightStream>> open_socket(Seen& seen, std::uint32_t max_tokens,
                                                   std::function<void()> then = {}) {
    wire::RequestSubmit submit{.token = lease_.token,
                               .request_id = {mint_request_id()},
                               .max_emitted_tokens = max_tokens,
                               .ignore_eos = true};
    submit.prompt_tokens.emplace(kPromptTokens, TenantPool::kFirstPromptToken);
    return LightStream::open(
        io_, lease_.address, submit,
        {.on_token = [&seen] { ++seen.tokens; },
         .on_end =
             [this, &seen, then = std::move(then)](Result<wire::RequestCompleted> end) {
               const bool is_whole = end && end->reason == "MaxTokensReached";
               note_end(seen, is_whole ? Result<void>{}
                                       : fail(Errc::LeaseRevoked,
                                              end ? end->reason : end.error().detail));
               if (is_whole && then) then();
             }});
  }

  Result<std::shared_ptr<SseStream>> connect_http(Seen& seen, std::function<void()> then = {}) {
    return SseStream::connect(io_, http_path_,
                              {.on_token = [&seen] { ++seen.tokens; },
                               .on_end =
                                   [this, &seen, then = std::move(then)](const Result<void>& how) {
                                     note_end(seen, how);
                                     if (how && then) then();
                                   }});
  }

  static Result<void> expect_whole(const Seen& seen) {
    if (!seen.error) return {};
    return fail(seen.error->code, "a request failed: " + seen.error->detail);
  }

  // -------------------------------------------------------------------------------- latency

  Result<void> measure_latency() {
    Seen seen;
    const auto http = TRY(connect_http(seen));
    const std::string request = sse_request(key_, model_, 1);
    for (std::uint32_t i = 0; i < kWarmUp + config_.requests; ++i) {
      for (const Path path : kPaths) {
        seen = {};
        const TimePoint begin = timers_.now();
        if (path == Path::Socket) (void)TRY(open_socket(seen, 1));
        if (path == Path::Http) http->send(request);
        TRY(run_until([&seen] { return seen.ended > 0; }));
        TRY(expect_whole(seen));
        if (i < kWarmUp) continue;
        samples_[fmt::format("latency_us.{}", name_of(path))].push_back(
            1e3 * ms_of(*seen.ended_at - begin));
      }
    }
    http->close();
    return {};
  }

  // ----------------------------------------------------------------------------- throughput

  Result<void> measure_throughput() {
    for (std::uint32_t round = 0; round < config_.rounds; ++round) {
      TRY(socket_round());
      TRY(http_round(Path::Http));
      samples_["throughput.engine_tokens_per_s"].push_back(
          TRY(decode_rate({.model_path = config_.model_path,
                           .simd = config_.simd,
                           .threads = compute_threads(),
                           .texts = config_.streams,
                           .prompt_tokens = kPromptTokens,
                           .tokens = kStreamTokens})));
      TRY(http_round(Path::Traced));
      TRY(batch_->begin());
      TRY(http_round(Path::Batch));
      samples_["throughput.batch_lines_per_round"].push_back(TRY(batch_->end()));
    }
    return {};
  }

  double loss_percent(const std::string& rate, Path from, Path to) const {
    const auto median = [&](Path path) {
      return figure_of(samples_, fmt::format("throughput.{}_{}", name_of(path), rate));
    };
    return 100 * (1 - median(to) / median(from));
  }

  Result<void> socket_round() {
    Seen seen;
    std::vector<std::shared_ptr<LightStream>> streams(config_.streams);
    std::function<void(std::size_t)> begin = [&](std::size_t i) {
      auto opened = open_socket(seen, kStreamTokens, [&begin, i] { begin(i); });
      if (!opened) {
        seen.error = opened.error();
        return;
      }
      streams[i] = *std::move(opened);
    };
    for (std::size_t i = 0; i < streams.size(); ++i) begin(i);
    const auto measured = measure_rate(Path::Socket, seen);
    for (const auto& stream : streams)
      if (stream) stream->close();
    return measured;
  }

  Result<void> http_round(Path path) {
    Seen seen;
    const std::string trace =
        path == Path::Traced ? "traceparent: " + TraceContext::start(true).text() + "\r\n" : "";
    const std::string request = sse_request(key_, model_, kStreamTokens, trace);
    std::vector<std::shared_ptr<SseStream>> streams(config_.streams);
    for (auto& stream : streams) {
      stream = TRY(connect_http(seen, [&stream, &request] { stream->send(request); }));
      stream->send(request);
    }
    const auto measured = measure_rate(path, seen);
    for (const auto& stream : streams)
      if (stream) stream->close();
    return measured;
  }

  /// Measures once each stream has read as many tokens on average as one request has. The
  /// undisturbed rate excludes the time in which the worker's main thread, which computes, waited
  /// for a core.
  Result<void> measure_rate(Path path, const Seen& seen) {
    const std::uint64_t warm = std::uint64_t{kStreamTokens} * config_.streams;
    TRY(run_until([&] { return seen.tokens >= warm || seen.error; }));
    const std::uint64_t before = seen.tokens;
    const double ran_before_ns = process_time_ns(system_->worker_pid());
    const ThreadRunQueues early = run_queues_of(system_->worker_pid());
    const TimePoint begin = timers_.now();
    TRY(run_until([&] { return timers_.now() - begin >= config_.window || seen.error; }));
    TRY(expect_whole(seen));
    const double seconds = ms_of(timers_.now() - begin) / 1e3;
    const double ran_after_ns = process_time_ns(system_->worker_pid());
    if (ran_before_ns == 0 || ran_after_ns == 0)
      return fail(Errc::SystemError, "the worker's CPU time is unknown: it has exited; run again");
    const ThreadRunQueues late = run_queues_of(system_->worker_pid());
    const double waited_s = static_cast<double>(waited_ns(early, late, kComputeThreads)) / 1e9;
    const auto tokens = static_cast<double>(seen.tokens - before);
    const std::string place = fmt::format("throughput.{}_", name_of(path));
    samples_[place + "tokens_per_s"].push_back(tokens / seconds);
    samples_[place + "undisturbed_per_s"].push_back(tokens / (seconds - waited_s));
    samples_[place + "cpu_us_per_token"].push_back((ran_after_ns - ran_before_ns) / 1e3 / tokens);
    return {};
  }

  // ---------------------------------------------------------------------------- revocations

  Result<void> measure_revocations() {
    for (std::uint32_t i = 0; i < config_.revocations; ++i) {
      samples_["revoke_us.socket"].push_back(TRY(revoke_lease_us()));
      samples_["revoke_us.http"].push_back(TRY(revoke_key_us()));
    }
    return {};
  }

  Result<double> revoke_lease_us() {
    TRY(acquire());
    Seen seen;
    const auto stream = TRY(open_socket(seen, kEndlessTokens));
    return revoke_us(seen,
                     wire::LeaseRevoke{.lease = lease_.lease, .request_id = {mint_request_id()}});
  }

  Result<double> revoke_key_us() {
    const std::string key = TRY(system_->create_key(kTenant.value));
    Seen seen;
    const auto stream = TRY(connect_http(seen));
    stream->send(sse_request(key, model_, kEndlessTokens));
    const auto took = revoke_us(seen, wire::KeyRevoke{.key = api_key_id(hash_of_api_key(key)),
                                                      .request_id = {mint_request_id()}});
    stream->close();
    return took;
  }

  template <class Message>
  Result<double> revoke_us(Seen& seen, const Message& message) {
    TRY(run_until([&] { return seen.tokens >= kTokensBeforeRevocation || seen.ended > 0; }));
    TRY(expect_whole(seen));
    // A new connection, because the broker closes connections that make no calls for a while.
    const auto caller =
        control::Peer::create(TRY(control::connect_to(io_, system_->broker_socket())), {});
    caller->start();
    std::optional<Result<control::Payload>> reply;
    const TimePoint begin = timers_.now();
    caller->call(std::string(Message::kMethod), {.body = message.to_json()},
                 [&reply](Result<control::Payload> done) { reply = std::move(done); });
    TRY(run_until([&] { return seen.ended > 0 && reply; }));
    caller->close();
    TRY(*std::move(reply));
    if (!seen.error) return fail(Errc::TimedOut, "the text ended before it was revoked");
    return 1e3 * ms_of(*seen.ended_at - begin);
  }

  const HttpBenchConfig& config_;
  TraceSink sink_;
  std::optional<TemporaryDirectory> directory_;
  std::string http_path_, model_, key_;
  std::unique_ptr<System> system_;
  std::optional<BatchLoad> batch_;
  boost::asio::io_context io_;
  client::AsioTimers timers_{io_};
  std::shared_ptr<client::LeaseHolder> holder_;
  wire::LeaseAcquired lease_;
  Samples samples_;
};

}  // namespace

Result<Json> measure_http(const HttpBenchConfig& config) {
  return Json{{"http", TRY(HttpBench(config).measure())}};
}

}  // namespace leasehold::bench
