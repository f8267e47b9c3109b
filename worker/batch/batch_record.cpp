#include "worker/batch/batch_record.hpp"

#include <array>

namespace leasehold::batch {
namespace {

constexpr std::array<std::string_view, kStatusCount> kNames{
    "validating", "in_progress", "finalizing", "completed",
    "failed",     "expired",     "cancelling", "cancelled"};

bool may_follow(const BatchRecord& batch, Status to) {
  switch (batch.status) {
    case Status::Validating:
      return to == Status::InProgress || to == Status::Failed || to == Status::Cancelling;
    case Status::InProgress:
      return to == Status::Finalizing || to == Status::Failed || to == Status::Cancelling;
    case Status::Finalizing:
      return to == (batch.has_expired ? Status::Expired : Status::Completed);
    case Status::Cancelling:
      return to == Status::Cancelled;
    case Status::Completed:
    case Status::Failed:
    case Status::Expired:
    case Status::Cancelled:
      return false;
  }
  return false;
}

}  // namespace

std::string_view name(Status status) {
  return kNames.at(static_cast<std::size_t>(status));
}

std::int64_t BatchRecord::created_at() const {
  const auto found = reached_at.find(Status::Validating);
  return found == reached_at.end() ? 0 : found->second;
}

bool advance(BatchRecord& batch, Status to, std::int64_t now_unix_s) {
  if (!may_follow(batch, to)) return false;
  batch.status = to;
  batch.reached_at.insert_or_assign(to, now_unix_s);
  return true;
}

BatchRecord as_seen(const BatchRecord& stored, BatchRecord running) {
  if (!is_final(running.status)) return running;
  running.status = stored.status;
  running.reached_at = stored.reached_at;
  return running;
}

}  // namespace leasehold::batch
