// What a member of etcd sends, and what a cell has in etcd: replies, lines of a watch, errors, and
// the values of keys. Input: the bytes, which are read as each of them. A reply is accepted only if
// it fits what was asked, and a value that was read is written so that it reads the same.
#include "ipc/etcd/json_gateway.hpp"
#include "tests/fuzz/input.hpp"
#include "tools/cell/decide/ledger.hpp"
#include "tools/cell/decide/membership.hpp"
#include "tools/cell/decide/records.hpp"
#include "tools/cell/decide/revoked_key.hpp"

using namespace leasehold;
using namespace leasehold::etcd;

namespace {

const KeyRange kRange = KeyRange::prefix("/leasehold/c/hosts/");

void check_entries(const std::vector<KeyValue>& entries) {
  for (const KeyValue& entry : entries) {
    fuzz::check(kRange.contains(entry.key));
    fuzz::check(entry.created.value > 0 && entry.created <= entry.modified);
  }
}

void check_replies(std::string_view bytes) {
  if (const auto range = read_range_reply(bytes, kRange)) check_entries(range->entries);
  const Transaction sent{
      .conditions = {}, .success = {Put{"k", "1"}, Get{kRange}}, .failure = {Get{kRange}}};
  if (const auto reply = read_transaction_reply(bytes, sent)) {
    fuzz::check(reply->found.size() == 1);
    check_entries(reply->found.front());
  }
  if (const auto watch = read_watch_reply(bytes))
    for (const WatchEvent& event : watch->events) fuzz::check(!event.entry.key.empty());
  if (const auto token = read_authenticate_reply(bytes))
    fuzz::check(!token->empty() && token->find_first_of("\r\n ") == std::string::npos);
  if (const auto status = read_status_reply(bytes)) fuzz::check(status->size_bytes >= 0);
  fuzz::check(!error_of_reply(500, bytes).detail.empty());
  (void)is_invalid_token(bytes);
}

template <class Read>
void check_record(std::string_view bytes, Read read) {
  const auto record = read("/leasehold/c/k", bytes);
  if (!record) return fuzz::check(record.error().code == Errc::BadRequest);
  const auto again = read("/leasehold/c/k", cell::text_of(*record));
  fuzz::check(again.has_value() && *again == *record);
}

void check_values(std::string_view bytes) {
  check_record(bytes, cell::read_config);
  check_record(bytes, cell::read_wanted);
  check_record(bytes, cell::read_policy);
  check_record(bytes, cell::read_ledger);
  check_record(bytes, cell::read_revoked);
  // These two are limited in size, or checked against their key.
  if (const auto host = cell::read_host("k", bytes)) (void)cell::text_of(*host);
  (void)cell::read_key("k", bytes);
  if (const auto saved = cell::read_saved_membership(bytes, "boot"))
    fuzz::check(cell::read_saved_membership(cell::text_of(*saved, "boot"), "boot") == *saved);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_replies(bytes);
  check_values(bytes);
  return 0;
}
