#include "tools/cell/decide/host_key.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>

#include "ipc/control/messages/limits.hpp"
#include "ipc/control/tokens/api_key.hpp"

namespace leasehold::cell {
namespace {

/// `limit` · `part` / `whole`, rounded down, and at least 1. All of it without a whole.
std::uint32_t divided(std::uint32_t limit, std::uint32_t part, std::uint32_t whole) {
  if (part >= whole) return limit;
  const std::uint64_t share = std::uint64_t{limit} * part / whole;
  return static_cast<std::uint32_t>(std::max<std::uint64_t>(share, 1));
}

}  // namespace

wire::KeyLimits limits_on_host(const wire::KeyLimits& limits, const Share& part,
                               const Share& whole) {
  wire::KeyLimits host;
  if (limits.max_concurrent) {
    const std::uint32_t requests =
        divided(*limits.max_concurrent, part.concurrent, whole.concurrent);
    host.max_concurrent = std::min(requests, wire::kConcurrent.high);  // no host runs more
  }
  const auto rate = [&](const std::optional<std::uint32_t>& of_key) {
    return of_key ? std::optional(divided(*of_key, part.tokens_per_minute, whole.tokens_per_minute))
                  : std::nullopt;
  };
  host.rates.tokens_per_minute = rate(limits.rates.tokens_per_minute);
  host.rates.requests_per_minute = rate(limits.rates.requests_per_minute);
  return host;
}

wire::KeyCreate creation_of(const CellKey& key, const wire::KeyLimits& limits) {
  wire::KeyCreate create;
  create.tenant = key.tenant;
  create.hash = key.hash;
  create.name = key.name;
  create.expires_unix_ms = key.expires_unix_ms;
  create.limits = limits;
  return create;
}

wire::KeyUpdate update_of(const CellKey& key, const wire::KeyLimits& limits) {
  wire::KeyUpdate update;
  update.key = api_key_id(key.hash);
  update.name = key.name;
  update.expires_unix_ms = key.expires_unix_ms;
  update.never_expires = !key.expires_unix_ms;
  update.limits = limits;
  if (!limits.max_concurrent) update.removes.emplace_back("max_concurrent");
  if (!limits.rates.tokens_per_minute) update.removes.emplace_back("tokens_per_minute");
  if (!limits.rates.requests_per_minute) update.removes.emplace_back("requests_per_minute");
  return update;
}

bool is_expired(const CellKey& key, std::int64_t unix_ms) {
  return key.expires_unix_ms && *key.expires_unix_ms <= unix_ms;
}

Result<void> check_expiry(const CellKey& key, std::int64_t unix_ms) {
  if (!is_expired(key, unix_ms)) return {};
  return fail(Errc::BadToken,
              fmt::format("the API key {} expired at {:%Y-%m-%dT%H:%M:%SZ}; ask the operator to "
                          "prolong it with `brokerctl cell keys update`, or for a new one",
                          api_key_id(key.hash).value, fmt::gmtime(*key.expires_unix_ms / 1000)));
}

}  // namespace leasehold::cell
