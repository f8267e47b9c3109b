#include "tools/cell/decide/revoked_key.hpp"

#include "tools/cell/decide/ledger.hpp"
#include "tools/cell/decide/record_text.hpp"

namespace leasehold::cell {

void describe(Is<RevokedKey> auto& key, auto& fields) {
  fields.field("tenant", key.tenant);
  fields.field("revoked_unix_ms", key.revoked_unix_ms,
               Between<std::int64_t>{0, wire::kLastExpiry_ms});
  fields.field("hosts", key.hosts, MaxItems{Ledger::kMaxParts});
}

Result<RevokedKey> read_revoked(std::string_view key, std::string_view value) {
  return read_record<RevokedKey>(key, value);
}

std::string text_of(const RevokedKey& key) {
  return record_text(key);
}

}  // namespace leasehold::cell
