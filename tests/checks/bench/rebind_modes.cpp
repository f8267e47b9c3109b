// Latency of a rebind in each mode by length of text, and the steps that a moving text and another
// text beside it miss.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "common/clock.hpp"
#include "tests/checks/bench/recover_bench.hpp"
#include "tests/checks/bench/statistics.hpp"
#include "tests/checks/bench/thread_time.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::bench {
namespace {

using wire::RebindMode;

constexpr std::uint32_t kShortestPrompt = 64;
constexpr std::uint32_t kLengthFactor = 4;
constexpr std::size_t kTokensBetweenRebinds = 4;
constexpr std::uint32_t kPreemptiveMoves = 2;
/// Positions of the context that are left for the tokens of a text.
constexpr std::uint32_t kRoomForTokens = 160;
/// A lifetime has this many steps; the text moves at half of it.
constexpr double kStepsPerLifetime = 30;
constexpr double kShortestLifetime_ms = 100;
constexpr double kLongestLifetime_ms = 2'000;
constexpr std::int64_t kDrainGrace_ms = 60'000;

double copy_ms(std::uint64_t size_bytes) {
  const std::vector<std::byte> from(size_bytes, std::byte{1});
  std::vector<std::byte> to(size_bytes);
  const TimePoint began = SystemClock().now();
  std::memcpy(to.data(), from.data(), size_bytes);
  const TimePoint ended = SystemClock().now();
  // Reads the copy, so that the compiler keeps it.
  return to.back() == from.back() ? ms_of(ended - began) : 0;
}

double lifetime_ms(const RebindingText& text) {
  return std::clamp(kStepsPerLifetime * median_of(text.gaps_ms()), kShortestLifetime_ms,
                    kLongestLifetime_ms);
}

class RebindModesRun {
 public:
  RebindModesRun(const RecoverConfig& config, std::uint32_t context,
                 std::uint64_t kv_bytes_per_token, TemporaryDirectory directory, Samples& samples)
      : config_(config),
        context_(context),
        kv_bytes_per_token_(kv_bytes_per_token),
        directory_(std::move(directory)),
        samples_(samples) {}

  Result<RebindModes> run() {
    TRY(start());
    const std::uint32_t longest = std::min(config_.longest, context_ - kRoomForTokens);
    for (std::uint32_t length = kShortestPrompt; length <= longest; length *= kLengthFactor)
      result_.lengths.push_back(length);
    for (std::uint32_t round = 0; round < config_.rounds; ++round)
      for (const std::uint32_t length : result_.lengths) TRY(measure_length(length));
    TRY(measure_lifetimes());
    return std::move(result_);
  }

 private:
  Result<void> start() {
    SystemConfig config = system_config(config_);
    config.worker_options.insert(config.worker_options.end(),
                                 {"--event-log", directory_.file("steps")});
    system_ = TRY(System::start(config));
    return {};
  }

  Result<std::unique_ptr<RebindingText>> start_text(std::uint32_t prompt_tokens) {
    tenant_ = fmt::format("text-{}", texts_++);
    TRY(admit(tenant_, std::nullopt));
    auto text = std::make_unique<RebindingText>(
        RebindingTextConfig{.broker_socket = system_->broker_socket(),
                            .tenant = tenant_,
                            .prompt_tokens = prompt_tokens,
                            .max_tokens = context_ - prompt_tokens - 1,
                            .retry = kEagerRetry});
    TRY(text->await_tokens(kTokensBetweenRebinds));
    return text;
  }

  Result<void> admit(const std::string& tenant, std::optional<double> lifetime_ms) {
    wire::TenantAdmit admit{.tenant = {tenant},
                            .max_blocks = 1u << 20,
                            .ttl_ms = 3'600'000,
                            .rebinds_per_minute = 6'000'000,
                            .rebind_burst = 1u << 20};
    if (lifetime_ms) admit.max_lifetime_ms = static_cast<std::int64_t>(*lifetime_ms);
    return system_->broker().command(admit);
  }

  Result<void> measure_length(std::uint32_t length) {
    length_ = length;
    auto survivor = TRY(start_text(kTokensBetweenRebinds));
    const auto text = TRY(start_text(length));
    TRY(text->await_tokens(2 * kTokensBetweenRebinds));
    times("step").push_back(median_of(text->gaps_ms()));
    TRY(checkpoint(*text));
    TRY(reprefill(*text));
    TRY(preempt(*text));
    TRY(add_survivor_steps(*survivor));
    survivor.reset();
    TRY(adopt(*text));
    return failover(*text);
  }

  Result<void> reprefill(RebindingText& text) {
    const std::vector<LeaseId> before = text.leases();
    const TimePoint began = SystemClock().now();
    TRY(system_->revoke(before.back()));
    const auto recovered = TRY(text.await_grant(before.size()));
    times("reprefill").push_back(ms_of(recovered.token - began));
    return text.await_tokens(text.tokens() + kTokensBetweenRebinds);
  }

  Result<void> checkpoint(RebindingText& text) {
    TRY(drain(text));
    const Duration took = text.rebounds(RebindMode::Checkpoint).back().took;
    times("checkpoint").push_back(ms_of(took));
    return {};
  }

  /// Only leases granted from now on have the short lifetime, so that it need not cover the prompt.
  Result<void> preempt(RebindingText& text) {
    TRY(admit(tenant_, lifetime_ms(text)));
    TRY(drain(text));
    TRY(text.await_rebounds(RebindMode::Preemptive, kPreemptiveMoves));
    TRY(admit(tenant_, 3'600'000.0));
    TRY(text.await_rebounds(RebindMode::Preemptive, kPreemptiveMoves + 1));
    for (const client::Rebound& move : text.rebounds(RebindMode::Preemptive))
      times("preemptive").push_back(ms_of(move.took));
    return add_worker_times(text);
  }

  Result<void> adopt(RebindingText& text) {
    TRY(text.await_tokens(text.tokens() + kTokensBetweenRebinds));
    const std::size_t grant = text.leases().size();
    const TimePoint began = SystemClock().now();
    system_->kill_worker();
    TRY(system_->start_worker());
    const auto recovered = TRY(text.await_grant(grant));
    times("adopt").push_back(ms_of(recovered.token - began));
    return {};
  }

  /// The text runs alone, so each step of both workers has a row of it.
  Result<void> failover(RebindingText& text) {
    TRY(text.await_tokens(text.tokens() + kTokensBetweenRebinds));
    const std::size_t tokens = text.tokens();
    TRY(system_->replace_worker());
    TRY(text.await_rebounds(RebindMode::Failover, 1));
    TRY(text.await_tokens(text.tokens() + kTokensBetweenRebinds));
    system_->kill_replaced_worker();
    const auto took = text.rebounds(RebindMode::Failover).back().took;
    times("failover").push_back(ms_of(took));
    const std::vector<double> gaps = text.gaps_ms();
    times("failover_gap")
        .push_back(
            *std::max_element(gaps.begin() + static_cast<std::ptrdiff_t>(tokens) - 1, gaps.end()));
    for (const events::Rebind& rebind : TRY(rebinds_of(text)))
      if (rebind.mode == RebindMode::Failover)
        times("handover").push_back(ms_of(Duration(rebind.latency_ns)));
    return {};
  }

  /// Returns the text's rebinds whose latency the broker knows.
  Result<std::vector<events::Rebind>> rebinds_of(const RebindingText& text) {
    const std::vector<LeaseId> leases = text.leases();
    std::vector<events::Rebind> rebinds;
    for (const events::StampedEvent& stamped : TRY(system_->broker().events())) {
      const auto* rebind = std::get_if<events::Rebind>(&stamped.event);
      if (rebind == nullptr || rebind->latency_ns < 0) continue;
      if (std::ranges::find(leases, rebind->new_lease) != leases.end()) rebinds.push_back(*rebind);
    }
    return rebinds;
  }

  /// Adds the worker's times of the text's moves, and the time of copying as many bytes.
  Result<void> add_worker_times(const RebindingText& text) {
    for (const events::Rebind& rebind : TRY(rebinds_of(text))) {
      if (rebind.mode != RebindMode::Checkpoint && rebind.mode != RebindMode::Preemptive) continue;
      times("worker").push_back(ms_of(Duration(rebind.latency_ns)));
      const std::uint64_t tokens = rebind.prompt_tokens + rebind.emitted_tokens;
      times("copy").push_back(copy_ms(tokens * kv_bytes_per_token_));
    }
    return {};
  }

  Result<void> drain(RebindingText& text) {
    const std::size_t moves = text.rebounds(RebindMode::Checkpoint).size();
    TRY(system_->broker().command(
        wire::LeaseDrain{.lease = text.leases().back(), .grace_ms = kDrainGrace_ms}));
    TRY(text.await_rebounds(RebindMode::Checkpoint, moves + 1));
    return text.await_tokens(text.tokens() + kTokensBetweenRebinds);
  }

  /// A text may end before all lifetimes; then another text follows.
  Result<void> measure_lifetimes() {
    while (result_.lifetimes < config_.lifetimes) {
      const auto survivor = TRY(start_text(kTokensBetweenRebinds));
      const auto text = TRY(start_text(kShortestPrompt));
      TRY(admit(tenant_, lifetime_ms(*text)));
      TRY(drain(*text));
      const auto moves = [&] {
        return static_cast<std::uint32_t>(text->rebounds(RebindMode::Preemptive).size());
      };
      while (result_.lifetimes + moves() < config_.lifetimes) {
        const auto next = text->await_rebounds(RebindMode::Preemptive, moves() + 1);
        if (!next && !text->has_ended()) return next;
        if (!next) break;
      }
      if (moves() == 0) return fail(Errc::SystemError, "a text ended before its first move");
      result_.lifetimes += moves();
      const MissedSteps seen = TRY(missed(*text));
      result_.longest_gap_steps = std::max(result_.longest_gap_steps, seen.longest_gap);
      TRY(add_survivor_steps(*survivor));
    }
    return {};
  }

  Result<MissedSteps> missed(const RebindingText& text) {
    return missed_steps(TRY(events::read_event_file(directory_.file("steps"))), text.leases());
  }

  Result<void> add_survivor_steps(const RebindingText& survivor) {
    const MissedSteps seen = TRY(missed(survivor));
    result_.survivor.missed += seen.missed;
    result_.survivor.taken += seen.taken;
    return {};
  }

  /// The samples of this mode of the current length.
  std::vector<double>& times(const char* mode) {
    return samples_[fmt::format("rebind.lengths.{}.{}_ms", length_, mode)];
  }

  const RecoverConfig& config_;
  std::uint32_t context_;
  std::uint64_t kv_bytes_per_token_;
  TemporaryDirectory directory_;
  Samples& samples_;
  std::uint32_t length_ = 0;
  std::unique_ptr<System> system_;
  std::uint32_t texts_ = 0;
  std::string tenant_;  ///< Tenant of the text that was started last.
  RebindModes result_;
};

}  // namespace

MissedSteps missed_steps(std::span<const events::StampedEvent> steps,
                         const std::vector<LeaseId>& leases) {
  MissedSteps result;
  std::uint64_t since_last = 0;
  for (const events::StampedEvent& stamped : steps) {
    const auto* step = std::get_if<events::BatchedDecodeStep>(&stamped.event);
    if (step == nullptr) continue;
    const auto first = std::ranges::find_first_of(step->per_seq_leases, leases);
    ++since_last;
    if (first == step->per_seq_leases.end()) continue;
    if (result.taken++ > 0) {
      result.longest_gap = std::max(result.longest_gap, since_last);
      result.missed += since_last - 1;
    }
    since_last = 0;
  }
  return result;
}

Result<RebindModes> measure_rebind_modes(const RecoverConfig& config, std::uint32_t context,
                                         std::uint64_t kv_bytes_per_token, Samples& samples) {
  auto directory = TRY(TemporaryDirectory::create("recover"));
  return RebindModesRun(config, context, kv_bytes_per_token, std::move(directory), samples).run();
}

}  // namespace leasehold::bench
