#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/random.hpp"
#include "ipc/client/lease_holder.hpp"
#include "ipc/control/transport/client.hpp"
#include "tests/checks/bench/serve_bench.hpp"
#include "tests/checks/bench/tenant_pool.hpp"
#include "tests/checks/bench/thread_time.hpp"
#include "tools/brokerctl/requests.hpp"

namespace leasehold::bench {
namespace {

using Json = nlohmann::json;

constexpr Duration kProgressTimeout = std::chrono::minutes(2);
constexpr Duration kEventWait = std::chrono::milliseconds(100);
constexpr std::uint32_t kListedWorkers = 3;
constexpr std::uint32_t kListed = 10'000;
/// Requests of one tenant never take a worker's whole limit.
constexpr std::uint32_t kListedTenants = 8;
constexpr const char* kMostWaiting = "4000";  // of a worker and a lease
constexpr std::uint32_t kPerConnection = 250;
constexpr int kListRounds = 15;
constexpr std::uint32_t kTextsBeside = 4;  // one of them is cancelled
constexpr Duration kSlowUnit = std::chrono::milliseconds(5);

TenantId bench_tenant(std::uint32_t index) {
  return {fmt::format("owner-{}", index)};
}

/// What a connection has read of one of its requests.
struct Text {
  std::vector<std::int32_t> tokens{};
  bool is_submitted = false;
  std::string reason{};  ///< Empty: it has not ended.
  TimePoint ended_at{};
};

/// A tenant's connection to a worker, with any number of requests.
class Connection {
 public:
  /// Errors: those of connect_to.
  static Result<std::unique_ptr<Connection>> open(boost::asio::io_context& io,
                                                  client::Timers& timers,
                                                  const wire::LeaseAcquired& lease) {
    std::unique_ptr<Connection> opened(new Connection(timers, lease));
    opened->peer_ = control::Peer::create(
        TRY(control::connect_to(io, lease.address)),
        {.on_call = {},
         .on_notification = [raw = opened.get()](
                                const std::string& method,
                                const control::Payload& params) { raw->take(method, params.body); },
         .on_closed = [raw = opened.get()](const Error& why) { raw->note(why); }});
    opened->peer_->start();
    opened->call(wire::ConnectionAuthenticate{.token = lease.token}, [] {});
    return opened;
  }
  ~Connection() { peer_->close_now(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void submit(const std::string& id, std::int32_t first_token, std::uint32_t max_tokens) {
    wire::RequestSubmit submit{.token = lease_.token,
                               .request_id = {id},
                               .max_emitted_tokens = max_tokens,
                               .ignore_eos = true};
    submit.prompt_tokens.emplace(4, TenantPool::kFirstPromptToken + first_token);
    texts_[id] = {};
    call(submit, [this, id] { texts_[id].is_submitted = true; });
  }

  const std::map<std::string, Text>& texts() const { return texts_; }
  /// Whether the worker has taken every request.
  bool is_submitted() const {
    return std::ranges::all_of(texts_, [](const auto& text) { return text.second.is_submitted; });
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  Connection(client::Timers& timers, wire::LeaseAcquired lease)
      : timers_(timers), lease_(std::move(lease)) {}

  void note(const Error& error) {
    if (!error_) error_ = error;
  }

  template <class Message>
  void call(const Message& message, std::function<void()> then) {
    peer_->call(std::string(Message::kMethod), {.body = message.to_json()},
                [this, then = std::move(then)](Result<control::Payload> reply) {
                  reply ? then() : note(reply.error());
                });
  }

  void take(const std::string& method, const Json& params) {
    if (method == wire::TokenEmitted::kMethod) {
      const auto token = wire::TokenEmitted::from_json(params);
      if (!token) return note(token.error());
      return texts_[token->request.value].tokens.push_back(token->token);
    }
    if (method != wire::RequestCompleted::kMethod) return;
    const auto completed = wire::RequestCompleted::from_json(params);
    if (!completed) return note(completed.error());
    Text& text = texts_[completed->request.value];
    text.ended_at = timers_.now();
    text.reason = completed->reason;
  }

  client::Timers& timers_;
  wire::LeaseAcquired lease_;
  std::shared_ptr<control::Peer> peer_;
  std::map<std::string, Text> texts_;
  std::optional<Error> error_;
};

/// One broker, its workers, and the tenant's leases.
class RequestSystem {
 public:
  /// Every tenant gets a lease on every worker.
  static Result<std::unique_ptr<RequestSystem>> start(const SystemConfig& config,
                                                      std::uint32_t workers,
                                                      std::uint32_t tenants) {
    std::unique_ptr<RequestSystem> started(new RequestSystem);
    started->system_ = TRY(System::start(config));
    for (std::uint32_t i = 0; i < tenants; ++i)
      TRY(started->system_->admit(bench_tenant(i).value, 1, kTextsBeside));
    for (std::uint32_t i = 1; i < workers; ++i)
      TRY(started->system_->add_worker(fmt::format("more-{}", i)));
    for (const wire::WorkerView& worker : TRY(started->system_->broker().workers()))
      for (std::uint32_t i = 0; i < tenants; ++i)
        TRY(started->acquire(bench_tenant(i), worker.worker));
    return started;
  }

  std::span<const wire::LeaseAcquired> leases() const { return leases_; }
  std::string broker_socket() const { return system_->broker_socket(); }
  const client::Timers& timers() const { return timers_; }
  Result<std::unique_ptr<Connection>> connect(const wire::LeaseAcquired& lease) {
    return Connection::open(io_, timers_, lease);
  }

  Result<void> run_until(const std::function<bool()>& holds) {
    const TimePoint deadline = timers_.now() + kProgressTimeout;
    while (!holds()) {
      io_.restart();
      io_.run_one_for(kEventWait);
      if (timers_.now() > deadline) return fail(Errc::TimedOut, "the requests do not proceed");
    }
    return {};
  }

  /// Cancels requests, and returns once `ended` holds.
  Result<void> cancel(const wire::RequestStop& stop, const std::function<bool()>& ended) {
    // A new connection, because the broker closes connections that make no calls for a while.
    const auto caller = control::Peer::create(TRY(control::connect_to(io_, broker_socket())), {});
    caller->start();
    std::optional<Result<control::Payload>> reply;
    caller->call(std::string(wire::RequestStop::kMethod), {.body = stop.to_json()},
                 [&reply](Result<control::Payload> done) { reply = std::move(done); });
    const auto waited = run_until([&] { return reply && (!*reply || ended()); });
    caller->close_now();
    TRY(waited);
    TRY(*std::move(reply));
    return {};
  }

 private:
  RequestSystem() = default;

  Result<void> acquire(const TenantId& tenant, const std::string& worker) {
    auto holder = client::LeaseHolder::create(
        io_, timers_, broker_socket(),
        {.on_lost = [](const Error&) {}, .on_revoked = [](const wire::LeaseRevoked&) {}});
    std::optional<Result<wire::LeaseAcquired>> result;
    holder->acquire({.tenant = tenant, .worker = worker, .request_id = {mint_request_id()}},
                    [&result](Result<wire::LeaseAcquired> done) { result = std::move(done); });
    TRY(run_until([&] { return result.has_value(); }));
    leases_.push_back(TRY(*std::move(result)));
    holders_.push_back(std::move(holder));
    return {};
  }

  std::unique_ptr<System> system_;
  boost::asio::io_context io_;
  client::AsioTimers timers_{io_};
  std::vector<std::shared_ptr<client::LeaseHolder>> holders_;
  std::vector<wire::LeaseAcquired> leases_;
};

SystemConfig slow_config(const std::string& bin_dir, const std::string& model_path, Duration unit) {
  const auto unit_us = unit / std::chrono::microseconds(1);
  return {.bin_dir = bin_dir,
          .model_path = model_path,
          .threads = 0,  // units sleep, so they need no core of their own
          .broker_options = {},
          .worker_options = {"--slow-motion-us", std::to_string(unit_us), "--max-waiting",
                             kMostWaiting, "--max-waiting-per-lease", kMostWaiting}};
}

// ------------------------------------------------------------------------------------------- list

/// Submits requests evenly under all leases, on as many connections as they need. Nearly all wait.
Result<std::vector<std::unique_ptr<Connection>>> submit_many(RequestSystem& system) {
  std::vector<std::unique_ptr<Connection>> connections;
  const std::size_t n_leases = system.leases().size();
  std::uint32_t submitted = 0;
  for (std::size_t lease = 0; lease < n_leases; ++lease) {
    const auto end = static_cast<std::uint32_t>(kListed * (lease + 1) / n_leases);
    while (submitted < end) {
      Connection& connection =
          *connections.emplace_back(TRY(system.connect(system.leases()[lease])));
      for (std::uint32_t i = 0; i < kPerConnection && submitted < end; ++i)
        connection.submit(fmt::format("r-{}", submitted++), 0, 1'000);
      TRY(system.run_until([&] { return connection.error() || connection.is_submitted(); }));
      if (connection.error()) return std::unexpected(*connection.error());
    }
  }
  return connections;
}

/// Adds the times of lists as `brokerctl requests` makes them, without its output.
Result<void> measure_list(const std::string& bin_dir, const std::string& model_path,
                          Samples& samples) {
  const auto system =
      TRY(RequestSystem::start(slow_config(bin_dir, model_path, std::chrono::milliseconds(1)),
                               kListedWorkers, kListedTenants));
  const auto connections = TRY(submit_many(*system));
  auto client = TRY(control::Client::connect(system->broker_socket()));
  const auto call = [&](std::string_view method, const Json& params) -> Result<Json> {
    return TRY(client.call(std::string(method), {.body = params})).body;
  };
  const auto call_all = [&](std::string_view method, const std::vector<Json>& params) {
    std::vector<control::Payload> payloads;
    for (const Json& each : params) payloads.push_back({.body = each, .fds = {}});
    std::vector<Result<Json>> bodies;
    for (auto& reply : client.call_all(std::string(method), std::move(payloads)))
      bodies.push_back(reply ? Result<Json>(std::move(reply->body))
                             : std::unexpected(std::move(reply).error()));
    return bodies;
  };
  for (int i = 0; i < kListRounds; ++i) {
    const TimePoint begin = system->timers().now();
    const auto rows =
        TRY(brokerctl::read_requests({}, {.call = call, .call_all = call_all, .wait = {}}));
    samples["list_ms"].push_back(ms_of(system->timers().now() - begin));
    if (rows.requests.size() < kListed)
      return fail(Errc::MalformedMessage,
                  fmt::format("{} of {} requests were listed", rows.requests.size(), kListed));
  }
  return {};
}

// ----------------------------------------------------------------------------------------- cancel

/// Cancels one of several requests that generate.
class CancelBench {
 public:
  struct Config {
    int rounds;
    std::uint32_t text_tokens;
    std::uint32_t tokens_before;  ///< Of each stream, when one is cancelled.
  };
  CancelBench(RequestSystem& system, const Config& config) : system_(system), config_(config) {}

  Result<void> start() {
    connection_ = TRY(system_.connect(system_.leases().front()));
    return {};
  }

  /// The number of texts that differ from those of the first, undisturbed round.
  std::size_t changed_texts() const { return changed_; }

  /// Appends the times from a call to the end that its client reads.
  Result<void> measure(std::vector<double>& times_ms) {
    const auto undisturbed = TRY(round({}));
    for (int i = 0; i < config_.rounds; ++i) {
      const std::uint32_t cancelled = static_cast<std::uint32_t>(i) % kTextsBeside;
      const auto texts = TRY(round(cancelled));
      if (texts[cancelled].reason != "RequestCancelled")
        return fail(Errc::TimedOut, "a text ended before it was cancelled");
      times_ms.push_back(ms_of(texts[cancelled].ended_at - cancelled_at_));
      for (std::uint32_t s = 0; s < kTextsBeside; ++s)
        changed_ += s != cancelled && texts[s].tokens != undisturbed[s].tokens ? 1 : 0;
    }
    return {};
  }

 private:
  const Text& text(std::uint32_t stream) const { return connection_->texts().at(id_of(stream)); }
  std::string id_of(std::uint32_t stream) const { return fmt::format("r-{}-{}", round_, stream); }

  Result<std::vector<Text>> round(std::optional<std::uint32_t> cancelled) {
    ++round_;
    for (std::uint32_t s = 0; s < kTextsBeside; ++s)
      connection_->submit(id_of(s), static_cast<std::int32_t>(s), config_.text_tokens);
    const auto each = [&](auto holds) {
      return [this, holds] {
        if (connection_->error()) return true;
        for (std::uint32_t s = 0; s < kTextsBeside; ++s)
          if (!holds(text(s))) return false;
        return true;
      };
    };
    if (cancelled) {
      TRY(system_.run_until(each([this](const Text& text) {
        return text.tokens.size() >= config_.tokens_before || !text.reason.empty();
      })));
      cancelled_at_ = system_.timers().now();
      TRY(system_.cancel({.worker = system_.leases().front().worker,
                          .ids = {wire::id_in_worker(bench_tenant(0), {id_of(*cancelled)}).value}},
                         [&] { return !text(*cancelled).reason.empty(); }));
    }
    TRY(system_.run_until(each([](const Text& text) { return !text.reason.empty(); })));
    if (connection_->error()) return std::unexpected(*connection_->error());
    std::vector<Text> texts;
    for (std::uint32_t s = 0; s < kTextsBeside; ++s) texts.push_back(text(s));
    return texts;
  }

  RequestSystem& system_;
  Config config_;
  std::unique_ptr<Connection> connection_;
  int round_ = 0;
  TimePoint cancelled_at_;
  std::size_t changed_ = 0;
};

/// Returns the number of changed texts.
Result<std::size_t> measure_cancel(const SystemConfig& system_config,
                                   const CancelBench::Config& config,
                                   std::vector<double>& times_ms) {
  const auto system = TRY(RequestSystem::start(system_config, 1, 1));
  CancelBench bench(*system, config);
  TRY(bench.start());
  TRY(bench.measure(times_ms));
  return bench.changed_texts();
}

}  // namespace

Result<Json> measure_requests(const std::string& bin_dir, const std::string& model_path) {
  Samples samples;
  TRY(measure_list(bin_dir, model_path, samples));
  std::size_t changed = TRY(measure_cancel(
      {.bin_dir = bin_dir, .model_path = model_path, .broker_options = {}},
      {.rounds = 100, .text_tokens = 300, .tokens_before = 8}, samples["cancel_ms"]));
  changed += TRY(measure_cancel(slow_config(bin_dir, model_path, kSlowUnit),
                                {.rounds = 8, .text_tokens = 4, .tokens_before = 1},
                                samples["slow_cancel_ms"]));
  const FigureRow rows[] = {{"list_ms"}, {"cancel_ms"}, {"slow_cancel_ms"}};
  Json json = {{"listed", kListed}, {"workers", kListedWorkers}, {"changed_texts", changed}};
  add_figures(json, samples, rows);
  json["slow_cancel_over_unit_ms"] =
      figure_of(samples, "slow_cancel_ms", Statistic::P99) - ms_of(kSlowUnit);
  return json;
}

}  // namespace leasehold::bench
