#include "tools/checks/bench/tenant_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "common/process.hpp"
#include "common/random.hpp"
#include "tools/checks/bench/light_stream.hpp"
#include "tools/client/lease_holder.hpp"

namespace leasehold::bench {
namespace {

constexpr Duration kTryAgain = std::chrono::milliseconds(5);
constexpr Duration kReleasePatience = std::chrono::seconds(1);
constexpr auto kLookAgain = std::chrono::milliseconds(2);
constexpr std::uint32_t kPromptTokens = 4;
constexpr std::uint32_t kFirstPromptToken = 300;  // words, in every vocabulary we use

}  // namespace

/// What the seats tell, under one lock.
struct Board {
  struct Seat {
    std::optional<LeaseId> lease;  ///< Under which a token came last.
    TimePoint token_at;
  };
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::vector<Seat> seats;
  std::map<LeaseId, LeaseEnd> ends;
  std::vector<TokenGap> gaps;
  std::uint64_t tokens = 0;
  Crowd::Losses losses;
  std::string last_error = "no seat met an error";
};

/// One tenant. Threads: the crowd's.
class Seat : public std::enable_shared_from_this<Seat> {
 public:
  Seat(boost::asio::io_context& io, tenant::Timers& timers, const CrowdConfig& config, Board& board,
       std::uint32_t index)
      : io_(io), timers_(timers), config_(config), board_(board), index_(index) {}

  ~Seat() {
    if (stream_) stream_->close();
  }

  void acquire();

 private:
  void submit();
  void take_token();
  void completed(const wire::RequestCompleted& completed);
  void failed(const Error& error);
  void lease_ended(const std::string& reason);

  boost::asio::io_context& io_;
  tenant::Timers& timers_;
  const CrowdConfig& config_;
  Board& board_;
  std::uint32_t index_;
  std::shared_ptr<tenant::LeaseHolder> holder_;
  std::shared_ptr<LightStream> stream_;
  std::optional<wire::LeaseAcquired> lease_;
  std::optional<TimePoint> last_token_;
  std::uint64_t tokens_read_ = 0;  ///< Of this request.
  tenant::Timer retry_;
};

void Seat::acquire() {
  if (!holder_) {
    holder_ = tenant::LeaseHolder::create(io_, timers_, config_.broker_socket, [](const Error&) {});
  }
  const wire::LeaseAcquire wanted{.tenant = {fmt::format("bench-{}", index_)},
                                  .request_id = {mint_request_id()}};
  holder_->acquire(wanted, [weak = weak_from_this()](Result<wire::LeaseAcquired> acquired) {
    const auto self = weak.lock();
    if (!self) return;
    if (!acquired) return self->failed(acquired.error());
    self->lease_ = *std::move(acquired);
    self->submit();
  });
}

void Seat::submit() {
  wire::Generate generate{.token = lease_->token,
                          .request_id = {mint_request_id()},
                          .max_emitted_tokens = config_.max_tokens,
                          .ignore_eos = true};
  std::vector<std::int32_t> prompt;
  for (std::uint32_t i = 0; i < kPromptTokens; ++i) {
    prompt.push_back(static_cast<std::int32_t>(kFirstPromptToken + (index_ * 7 + i) % 100));
  }
  generate.prompt_tokens = std::move(prompt);
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

void Seat::take_token() {
  const TimePoint now = timers_.now();
  const std::lock_guard lock(board_.mutex);
  ++board_.tokens;
  ++tokens_read_;
  if (last_token_) {
    board_.gaps.push_back({index_, static_cast<double>((now - *last_token_).count()) / 1e3});
  }
  last_token_ = now;
  const bool was_running = board_.seats[index_].lease.has_value();
  board_.seats[index_] = {lease_->lease, now};
  if (!was_running) board_.changed.notify_all();
}

void Seat::completed(const wire::RequestCompleted& completed) {
  {
    const std::lock_guard lock(board_.mutex);
    board_.losses.tokens +=
        completed.emitted_tokens - std::min<std::uint64_t>(completed.emitted_tokens, tokens_read_);
  }
  const bool lost = completed.reason == "Revoked" || completed.reason == "LeaseFenced";
  if (!lost) return submit();
  lease_ended(completed.reason);
}

void Seat::lease_ended(const std::string& reason) {
  {
    const std::lock_guard lock(board_.mutex);
    board_.ends[lease_->lease] = {lease_->lease, timers_.now(), reason};
    board_.seats[index_].lease.reset();
    board_.changed.notify_all();
  }
  if (config_.refill) acquire();
}

/// Refused or cut off: from the beginning, soon. While the broker is away a lease goes on, and only
/// new requests are refused.
void Seat::failed(const Error& error) {
  if (error.code == Errc::BrokerLost && lease_) {
    retry_ = timers_.after(kTryAgain, [this] { submit(); });
    return;
  }
  if (error.code == Errc::LeaseRevoked || error.code == Errc::LeaseFenced) {
    return lease_ended(std::string(name(error.code)));  // taken between two requests
  }
  {
    const std::lock_guard lock(board_.mutex);
    ++board_.losses.streams;
    board_.last_error = fmt::format("{}: {}", name(error.code), error.detail);
    board_.seats[index_].lease.reset();
  }
  if (const auto holder = std::exchange(holder_, nullptr)) {
    holder->release(kReleasePatience, [holder] {});  // kept until it has said goodbye
  }
  if (!config_.refill) return;
  retry_ = timers_.after(kTryAgain, [this] { acquire(); });
}

struct Crowd::State {
  explicit State(CrowdConfig the_config) : config(std::move(the_config)) {
    board.seats.resize(config.seats);
    for (std::uint32_t i = 0; i < config.seats; ++i) {
      seats.push_back(std::make_shared<Seat>(io, timers, config, board, i));
      boost::asio::post(io, [seat = seats.back()] { seat->acquire(); });
    }
    thread = std::thread([this] {
      request_short_time_slice();
      io.run();
    });
  }
  ~State() {
    io.stop();
    thread.join();
  }

  CrowdConfig config;
  boost::asio::io_context io;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
  tenant::AsioTimers timers{io};
  Board board;
  std::vector<std::shared_ptr<Seat>> seats;
  std::thread thread;
};

Crowd::Crowd(CrowdConfig config) : state_(std::make_unique<State>(std::move(config))) {}
Crowd::~Crowd() = default;

std::vector<Crowd::Running> Crowd::running() const {
  const std::lock_guard lock(state_->board.mutex);
  std::vector<Running> running;
  for (std::uint32_t i = 0; i < state_->config.seats; ++i) {
    if (const auto& lease = state_->board.seats[i].lease) running.push_back({i, *lease});
  }
  return running;
}

Result<void> Crowd::await_running(std::size_t seats, Duration at_most) const {
  const Board& board = state_->board;
  std::unique_lock lock(board.mutex);
  const auto enough = [&] {
    return std::ranges::count_if(board.seats, [](const auto& s) { return s.lease.has_value(); }) >=
           static_cast<std::ptrdiff_t>(seats);
  };
  if (board.changed.wait_for(lock, at_most, enough)) return {};
  return fail(Errc::TimedOut,
              fmt::format("{} tenants do not all run; last: {}", seats, board.last_error));
}

void Crowd::forget_running() {
  const std::lock_guard lock(state_->board.mutex);
  for (auto& seat : state_->board.seats) seat.lease.reset();
}

std::optional<LeaseEnd> Crowd::await_end(LeaseId lease, Duration at_most) const {
  const Board& board = state_->board;
  std::unique_lock lock(board.mutex);
  if (!board.changed.wait_for(lock, at_most, [&] { return board.ends.contains(lease); })) return {};
  return board.ends.at(lease);
}

std::optional<TimePoint> Crowd::await_token(std::uint32_t seat, TimePoint after,
                                            Duration at_most) const {
  const Board& board = state_->board;
  std::unique_lock lock(board.mutex);
  const auto came = [&] { return board.seats[seat].lease && board.seats[seat].token_at > after; };
  if (!board.changed.wait_for(lock, at_most, came)) return {};
  return board.seats[seat].token_at;
}

std::vector<TokenGap> Crowd::take_gaps() {
  const std::lock_guard lock(state_->board.mutex);
  return std::exchange(state_->board.gaps, {});
}

std::uint64_t Crowd::tokens() const {
  const std::lock_guard lock(state_->board.mutex);
  return state_->board.tokens;
}

Crowd::Losses Crowd::losses() const {
  const std::lock_guard lock(state_->board.mutex);
  return state_->board.losses;
}

Result<void> Crowd::await_tokens(std::uint64_t tokens, Duration at_most) const {
  const tenant::Timers& clock = state_->timers;
  for (const TimePoint give_up = clock.now() + at_most; clock.now() < give_up;) {
    if (this->tokens() >= tokens) return {};
    std::this_thread::sleep_for(kLookAgain);
  }
  return fail(Errc::TimedOut, fmt::format("{} tokens do not come", tokens));
}

}  // namespace leasehold::bench
