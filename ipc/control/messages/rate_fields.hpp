/// The fields of RateLimits and RateParts. A message has them beside its own fields, not in a
/// nested object.
#pragma once

#include "ipc/control/messages/limits.hpp"
#include "ipc/control/messages/rates.hpp"

namespace leasehold::wire {

inline constexpr auto kRateLimits = [](auto& m, auto& fields) {
  fields.field("tokens_per_minute", m.tokens_per_minute, kPerMinute);
  fields.field("requests_per_minute", m.requests_per_minute, kPerMinute);
  fields.field("tokens_per_day", m.tokens_per_day, kTokensPerDay);
};

inline constexpr auto kRateParts = [](auto& m, auto& fields) {
  fields.field("tokens_per_minute", m.tokens_per_minute, kPerMinute);
  fields.with_default("token_credit", m.token_credit, std::uint32_t{0}, kPerMinuteOrZero);
  fields.with_default("starts_empty", m.starts_empty, false);
  fields.field("request_tokens", m.request_tokens, kPerMinute);
  fields.field("requests_per_minute", m.requests_per_minute, kPerMinute);
  fields.with_default("request_credit", m.request_credit, std::uint32_t{0}, kPerMinuteOrZero);
  fields.field("tokens_today", m.tokens_today, Between<std::uint64_t>{0, kTokensPerDay.high});
  fields.with_default("day_end_boottime_ns", m.day_end_boottime_ns, std::int64_t{0}, kBoottime_ns);
  fields.field("request_day_tokens", m.request_day_tokens, kTokensPerDay);
};

}  // namespace leasehold::wire
