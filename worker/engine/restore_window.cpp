#include "worker/engine/restore_window.hpp"

#include <fmt/format.h>

namespace leasehold {
namespace {

/// True when a later attempt can succeed: for example when another worker fills the region, or when
/// the broker revoked it while this worker filled it. BrokerLost does not count, because new
/// requests are refused until the broker returns.
bool is_passing(Errc code) {
  return is_lease_ended(code) || (is_retryable(code) && code != Errc::BrokerLost);
}

}  // namespace

/// Requests survive the first loss of a part, however long its restore took.
std::optional<Error> RestoreWindow::on_lost(std::size_t part, TimePoint now) {
  if (!restored_.contains(part)) return std::nullopt;
  if (!repeating_since_) repeating_since_ = now;
  if (now - *repeating_since_ < kRestoreTimeout) return std::nullopt;
  close();
  return Error{Errc::WeightsLoading,
               fmt::format("the weights are revoked faster than a step runs, for {} s; retry",
                           kRestoreTimeout / std::chrono::seconds(1))};
}

void RestoreWindow::on_restored(std::size_t part) {
  failing_since_.reset();
  restored_.insert(part);
}

std::optional<Error> RestoreWindow::on_failed(const Error& error, TimePoint now) {
  if (!failing_since_) failing_since_ = now;
  const bool passing = is_passing(error.code);
  if (passing && now - *failing_since_ < kRestoreTimeout) return std::nullopt;
  close();
  if (error.code == Errc::BrokerLost) return error;
  if (passing) {
    return Error{
        Errc::WeightsLoading,
        fmt::format("the weights are not restored after {} s ({}: {}); retry",
                    kRestoreTimeout / std::chrono::seconds(1), name(error.code), error.detail)};
  }
  return Error{Errc::MissingWeight, fmt::format("the weights cannot be restored: {} ({})",
                                                error.detail, name(error.code))};
}

}  // namespace leasehold
