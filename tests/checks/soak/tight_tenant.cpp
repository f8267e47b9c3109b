#include "tests/checks/soak/tight_tenant.hpp"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "common/random.hpp"

namespace leasehold::soak {
namespace {

constexpr Duration kRetryDelay = std::chrono::milliseconds(200);
constexpr Duration kReleaseTimeout = std::chrono::seconds(1);
constexpr std::uint64_t kFirstSeed = 1000;  // the seeds of other tenants are smaller
constexpr const char* kPrompt = "Once upon a time there was a girl";

}  // namespace

TightTenant::TightTenant(std::string broker_socket, std::uint32_t max_tokens,
                         std::vector<std::vector<std::int32_t>> undisturbed)
    : broker_socket_(std::move(broker_socket)),
      max_tokens_(max_tokens),
      undisturbed_(std::move(undisturbed)) {}

TightTenant::~TightTenant() {
  for (const auto& stream : streams_) stream->close();
}

void TightTenant::poll(bool starts) {
  io_.restart();
  io_.poll();
  if (starts && is_idle() && timers_.now() >= retry_at_) acquire();
}

void TightTenant::acquire() {
  acquiring_ = true;
  holder_ = client::LeaseHolder::create(
      io_, timers_, broker_socket_,
      {.on_lost = [](const Error&) {}, .on_revoked = [](const wire::LeaseRevoked&) {}});
  holder_->acquire({.tenant = {kName}, .request_id = {mint_request_id()}},
                   [this](Result<wire::LeaseAcquired> lease) {
                     acquiring_ = false;
                     lease ? submit(*lease) : drop_lease();
                   });
}

void TightTenant::submit(const wire::LeaseAcquired& lease) {
  running_.assign(kRequests, {});
  for (std::uint32_t number = 0; number < kRequests; ++number) {
    running_[number].tenant = fmt::format("{}-{}", kName, number);
    if (!undisturbed_.empty()) running_[number].undisturbed = undisturbed_[number];
    const wire::RequestSubmit request{
        .token = lease.token,
        .request_id = {mint_request_id()},
        .prompt = kPrompt,
        .sampling = {.temperature = 0.8f, .seed = kFirstSeed + number},
        .max_emitted_tokens = max_tokens_,
        .ignore_eos = true};
    auto stream = client::WorkerStream::open(io_, lease.address, request, handlers_of(number));
    if (!stream) continue;
    streams_.push_back(*std::move(stream));
    ++open_;
  }
  if (open_ == 0) drop_lease();
}

client::WorkerStream::Handlers TightTenant::handlers_of(std::uint32_t number) {
  return {.on_submitted = [](const wire::RequestSubmitted&) {},
          .on_token =
              [this, number](const wire::TokenEmitted& token) {
                running_[number].record.tokens.push_back(token.token);
              },
          .on_preempted =
              [this](const wire::RequestPreempted& preempted) {
                if (preempted.swapped_blocks > 0) ++swaps_;
              },
          .on_completed =
              [this, number](const wire::RequestCompleted& completed) {
                end(number, completed.reason == "MaxTokensReached");
              },
          .on_failed = [this, number](const Error&) { end(number, false); }};
}

void TightTenant::end(std::uint32_t number, bool is_complete) {
  if (is_complete) running_[number].record.completed = "MaxTokensReached";
  texts_.push_back(std::move(running_[number]));
  if (--open_ == 0) drop_lease();
}

/// Releases the lease. Handlers of the streams and of the holder call this, so both are destroyed
/// later.
void TightTenant::drop_lease() {
  retry_at_ = timers_.now() + kRetryDelay;
  const auto holder = std::exchange(holder_, nullptr);
  holder->release(kReleaseTimeout, [holder] {});  // kept alive until the release is answered
  boost::asio::post(io_, [streams = std::exchange(streams_, {})] {});
}

}  // namespace leasehold::soak
