/// Reads and writes the JSON object of one key from the description of its type. Only the sources
/// of records include this header.
#pragma once

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "ipc/control/messages/json_fields.hpp"
#include "ipc/control/transport/excess.hpp"
#include "tools/cell/decide/records.hpp"

namespace leasehold::cell {

/// Revisions of keys that exist.
inline constexpr Between<std::int64_t> kRevisions{1, std::numeric_limits<std::int64_t>::max()};

void describe(Is<Share> auto& share, auto& fields) {
  fields.with_default("concurrent", share.concurrent, 0u);
  fields.with_default("blocks", share.blocks, 0u);
  fields.with_default("reserved", share.reserved, 0u);
  fields.with_default("tokens_per_minute", share.tokens_per_minute, 0u);
}

void describe(Is<PartOwner> auto& owner, auto& fields) {
  fields.field("host", owner.host);
  fields.field("incarnation", owner.incarnation.value, kRevisions);
}

inline constexpr std::string_view kCorrectRecord = "correct it, or delete the key";

/// `advice`: what a user does about a wrong value.
template <class Record>
Result<Record> read_record(std::string_view key, std::string_view value,
                           std::string_view advice = kCorrectRecord) {
  const auto wrong = [&](std::string_view why) {
    return fail(Errc::BadRequest,
                fmt::format("the value of {} in etcd is wrong: {}; {}", key, why, advice));
  };
  if (const auto excess = control::exceeded_limit(value, control::Limits{})) return wrong(*excess);
  const nlohmann::json json = nlohmann::json::parse(value, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return wrong("it is not a JSON object");
  auto record = read_fields<Record>(json);
  if (!record) return wrong(record.error().detail);
  return record;
}

template <class Record>
std::string record_text(const Record& record) {
  return to_field(record).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace leasehold::cell
