#include "tests/checks/bench/tenant_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "common/machine/process.hpp"
#include "common/random.hpp"
#include "ipc/client/lease_holder.hpp"
#include "tests/checks/bench/light_stream.hpp"

namespace leasehold::bench {
namespace {

constexpr Duration kRetryDelay = std::chrono::milliseconds(5);
constexpr Duration kReleaseTimeout = std::chrono::seconds(1);
constexpr auto kTokenPollInterval = std::chrono::milliseconds(2);

}  // namespace

/// Results of all clients, under one lock.
struct PoolResults {
  struct TenantClient {
    std::optional<LeaseId> lease;  ///< The lease of the last token.
    TimePoint token_at;
  };
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::vector<TenantClient> clients;
  std::map<LeaseId, LeaseEnd> ends;
  std::vector<double> gaps_us;
  std::vector<double> first_tokens_s;
  std::uint64_t tokens = 0;
  TenantPool::Losses losses;
  std::string last_error = "no client met an error";
  std::optional<Error> final_error;
};

/// The client of one tenant. Threads: the pool's.
class TenantClient : public std::enable_shared_from_this<TenantClient> {
 public:
  TenantClient(boost::asio::io_context& io, client::Timers& timers, const TenantPoolConfig& config,
               PoolResults& results, std::uint32_t index)
      : io_(io), timers_(timers), config_(config), results_(results), index_(index) {}

  ~TenantClient() {
    if (stream_) stream_->close();
  }

  void acquire();

 private:
  void submit();
  std::vector<std::int32_t> prompt_of(std::uint64_t request) const;
  void take_token();
  void completed(const wire::RequestCompleted& completed);
  void failed(const Error& error);
  void lease_ended(const std::string& reason);
  void note_end(LeaseId lease, const std::string& reason);

  boost::asio::io_context& io_;
  client::Timers& timers_;
  const TenantPoolConfig& config_;
  PoolResults& results_;
  std::uint32_t index_;
  std::shared_ptr<client::LeaseHolder> holder_;
  std::shared_ptr<LightStream> stream_;
  std::optional<wire::LeaseAcquired> lease_;
  std::uint64_t requests_ = 0;
  TimePoint submitted_at_;
  std::optional<TimePoint> last_token_;
  std::uint64_t tokens_read_ = 0;  ///< Tokens of the current request.
  client::Timer retry_;
};

void TenantClient::acquire() {
  if (!holder_) {
    holder_ = client::LeaseHolder::create(
        io_, timers_, config_.broker_socket,
        {.on_lost = [](const Error&) {}, .on_revoked = [](const wire::LeaseRevoked&) {}});
  }
  const wire::LeaseAcquire wanted{.tenant = {fmt::format("{}-{}", config_.name, index_)},
                                  .request_id = {mint_request_id()}};
  holder_->acquire(wanted, [weak = weak_from_this()](Result<wire::LeaseAcquired> acquired) {
    const auto self = weak.lock();
    if (!self) return;
    if (!acquired) return self->failed(acquired.error());
    self->lease_ = *std::move(acquired);
    self->submit();
  });
}

std::vector<std::int32_t> TenantClient::prompt_of(std::uint64_t request) const {
  if (config_.prompt) return config_.prompt(index_, request);
  std::vector<std::int32_t> prompt;
  for (std::uint32_t i = 0; i < config_.prompt_tokens; ++i) {
    const auto word = static_cast<std::int32_t>(index_ * 7 + i) % TenantPool::kPromptWords;
    prompt.push_back(TenantPool::kFirstPromptToken + word);
  }
  return prompt;
}

void TenantClient::submit() {
  wire::RequestSubmit generate{.token = lease_->token,
                               .request_id = {mint_request_id()},
                               .max_emitted_tokens = config_.max_tokens,
                               .ignore_eos = true};
  generate.sampling = config_.sampling;
  const std::uint64_t request = requests_++;
  generate.sampling.seed = request;
  generate.prompt_tokens = prompt_of(request);
  if (config_.adapter) generate.adapter = config_.adapter(index_, request);
  submitted_at_ = timers_.now();
  last_token_.reset();
  tokens_read_ = 0;
  const auto weak = weak_from_this();
  auto opened = LightStream::open(io_, lease_->address, generate,
                                  {.on_token =
                                       [weak] {
                                         if (const auto self = weak.lock()) self->take_token();
                                       },
                                   .on_end =
                                       [weak](Result<wire::RequestCompleted> end) {
                                         const auto self = weak.lock();
                                         if (!self) return;
                                         end ? self->completed(*end) : self->failed(end.error());
                                       }});
  if (!opened) return failed(opened.error());
  stream_ = *std::move(opened);
}

void TenantClient::take_token() {
  const TimePoint now = timers_.now();
  const std::lock_guard lock(results_.mutex);
  ++results_.tokens;
  ++tokens_read_;
  if (last_token_) {
    results_.gaps_us.push_back(static_cast<double>((now - *last_token_).count()) / 1e3);
  } else {
    results_.first_tokens_s.push_back(static_cast<double>((now - submitted_at_).count()) / 1e9);
  }
  last_token_ = now;
  const bool was_running = results_.clients[index_].lease.has_value();
  results_.clients[index_] = {lease_->lease, now};
  if (!was_running) results_.changed.notify_all();
}

void TenantClient::completed(const wire::RequestCompleted& completed) {
  {
    const std::lock_guard lock(results_.mutex);
    results_.losses.tokens +=
        completed.emitted_tokens - std::min<std::uint64_t>(completed.emitted_tokens, tokens_read_);
  }
  const bool lost = completed.reason == "Revoked" || completed.reason == "LeaseFenced";
  if (!lost) return submit();
  if (completed.scope != name(FailureScope::Adapter) || !completed.lease)
    return lease_ended(completed.reason);
  note_end(*completed.lease, completed.reason);
  submit();
}

void TenantClient::lease_ended(const std::string& reason) {
  note_end(lease_->lease, reason);
  acquire();
}

void TenantClient::note_end(LeaseId lease, const std::string& reason) {
  const std::lock_guard lock(results_.mutex);
  results_.ends[lease] = {timers_.now(), reason};
  results_.clients[index_].lease.reset();
  results_.changed.notify_all();
}

/// Acquires again after a delay. While the broker is down the lease stays valid and only new
/// requests are refused, so then the client submits again.
void TenantClient::failed(const Error& error) {
  if (error.code == Errc::BrokerLost && lease_) {
    retry_ = timers_.after(kRetryDelay, [this] { submit(); });
    return;
  }
  if (error.code == Errc::LeaseRevoked || error.code == Errc::LeaseFenced) {
    return lease_ended(std::string(name(error.code)));  // revoked between two requests
  }
  {
    const std::lock_guard lock(results_.mutex);
    ++results_.losses.streams;
    results_.last_error = fmt::format("{}: {}", name(error.code), error.detail);
    if (!is_retryable(error.code)) results_.final_error = error;
    results_.clients[index_].lease.reset();
  }
  if (const auto holder = std::exchange(holder_, nullptr)) {
    holder->release(kReleaseTimeout, [holder] {});  // kept alive until the release is answered
  }
  retry_ = timers_.after(kRetryDelay, [this] { acquire(); });
}

struct TenantPool::State {
  explicit State(TenantPoolConfig the_config) : config(std::move(the_config)) {
    results.clients.resize(config.clients);
    for (std::uint32_t i = 0; i < config.clients; ++i) {
      clients.push_back(std::make_shared<TenantClient>(io, timers, config, results, i));
      boost::asio::post(io, [client = clients.back()] { client->acquire(); });
    }
    thread = std::thread([this] {
      set_thread_name(TenantPool::kThreadName);
      request_short_time_slice();
      io.run();
    });
  }
  ~State() {
    io.stop();
    thread.join();
  }

  TenantPoolConfig config;
  boost::asio::io_context io;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
  client::AsioTimers timers{io};
  PoolResults results;
  std::vector<std::shared_ptr<TenantClient>> clients;
  std::thread thread;
};

TenantPool::TenantPool(TenantPoolConfig config)
    : state_(std::make_unique<State>(std::move(config))) {}
TenantPool::~TenantPool() = default;

std::vector<TenantPool::Running> TenantPool::running() const {
  const std::lock_guard lock(state_->results.mutex);
  std::vector<Running> running;
  for (std::uint32_t i = 0; i < state_->config.clients; ++i) {
    if (const auto& lease = state_->results.clients[i].lease) running.push_back({i, *lease});
  }
  return running;
}

Result<void> TenantPool::await_running(std::size_t clients, Duration at_most) const {
  const PoolResults& results = state_->results;
  std::unique_lock lock(results.mutex);
  const auto enough = [&] {
    return std::ranges::count_if(results.clients, [](const auto& s) {
             return s.lease.has_value();
           }) >= static_cast<std::ptrdiff_t>(clients);
  };
  if (results.changed.wait_for(lock, at_most, enough)) return {};
  return fail(Errc::TimedOut, fmt::format("fewer than {} tenants run; last error: {}", clients,
                                          results.last_error));
}

void TenantPool::clear_running() {
  const std::lock_guard lock(state_->results.mutex);
  for (auto& client : state_->results.clients) client.lease.reset();
}

std::optional<LeaseEnd> TenantPool::await_end(LeaseId lease, Duration at_most) const {
  const PoolResults& results = state_->results;
  std::unique_lock lock(results.mutex);
  if (!results.changed.wait_for(lock, at_most, [&] { return results.ends.contains(lease); }))
    return {};
  return results.ends.at(lease);
}

std::optional<TimePoint> TenantPool::await_token(std::uint32_t client, TimePoint after,
                                                 Duration at_most) const {
  const PoolResults& results = state_->results;
  std::unique_lock lock(results.mutex);
  const auto came = [&] {
    return results.clients[client].lease && results.clients[client].token_at > after;
  };
  if (!results.changed.wait_for(lock, at_most, came)) return {};
  return results.clients[client].token_at;
}

std::optional<Error> TenantPool::final_error() const {
  const std::lock_guard lock(state_->results.mutex);
  return state_->results.final_error;
}

std::vector<double> TenantPool::take_gaps_us() {
  const std::lock_guard lock(state_->results.mutex);
  return std::exchange(state_->results.gaps_us, {});
}

std::vector<double> TenantPool::take_first_tokens_s() {
  const std::lock_guard lock(state_->results.mutex);
  return std::exchange(state_->results.first_tokens_s, {});
}

std::uint64_t TenantPool::tokens() const {
  const std::lock_guard lock(state_->results.mutex);
  return state_->results.tokens;
}

TenantPool::Losses TenantPool::losses() const {
  const std::lock_guard lock(state_->results.mutex);
  return state_->results.losses;
}

Result<void> TenantPool::await_tokens(std::uint64_t tokens, Duration at_most) const {
  const client::Timers& clock = state_->timers;
  for (const TimePoint deadline = clock.now() + at_most; clock.now() < deadline;) {
    if (this->tokens() >= tokens) return {};
    std::this_thread::sleep_for(kTokenPollInterval);
  }
  return fail(Errc::TimedOut, fmt::format("fewer than {} tokens arrived", tokens));
}

}  // namespace leasehold::bench
