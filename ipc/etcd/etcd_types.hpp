/// What a client and etcd exchange: keys, conditions, operations and replies.
///
/// Source: etcd 3.4, etcdserver/etcdserverpb/rpc.proto. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::etcd {

/// The number of a change of etcd's data. It increases by one with each transaction that writes.
/// Zero is the revision of a key that does not exist.
struct Revision {
  std::int64_t value = 0;
  auto operator<=>(const Revision&) const = default;
};

struct KeyValue {
  std::string key;
  std::string value;
  Revision created;   ///< Revision of the put that created the key.
  Revision modified;  ///< Revision of the newest put.
  bool operator==(const KeyValue&) const = default;
};

/// One key, or all keys with the same beginning.
struct KeyRange {
  std::string first;
  std::string end;  ///< The first key behind the range. Empty: only `first`.

  static KeyRange one(std::string key) { return {.first = std::move(key), .end = {}}; }
  /// Precondition: `prefix` is not empty, and its last byte is not 0xFF.
  static KeyRange prefix(std::string prefix);
  bool contains(std::string_view key) const {
    return end.empty() ? key == first : key >= first && key < end;
  }
  bool operator==(const KeyRange&) const = default;
};

/// A condition of a transaction: a revision of one key equals a number, or does not.
struct Compare {
  enum class Field : std::uint8_t { Created, Modified };

  std::string key;
  Field field = Field::Created;
  bool is_equal = true;
  Revision revision;

  static Compare absent(std::string key) { return {std::move(key), Field::Created, true, {}}; }
  static Compare created_at(std::string key, Revision revision) {
    return {std::move(key), Field::Created, true, revision};
  }
  static Compare not_created_at(std::string key, Revision revision) {
    return {std::move(key), Field::Created, false, revision};
  }
  /// Revision zero: the key does not exist.
  static Compare modified_at(std::string key, Revision revision) {
    return {std::move(key), Field::Modified, true, revision};
  }
  bool operator==(const Compare&) const = default;
};

struct Put {
  std::string key;
  std::string value;
  bool operator==(const Put&) const = default;
};
struct Delete {
  KeyRange range;
  bool operator==(const Delete&) const = default;
};
struct Get {
  KeyRange range;
  bool newest_only = false;  ///< At most one entry is found: that of the newest put, no value.
  bool operator==(const Get&) const = default;
};
using Operation = std::variant<Put, Delete, Get>;

/// If all conditions hold, `success` is executed, otherwise `failure`; in one step. A transaction
/// writes each key at most once.
struct Transaction {
  static constexpr std::size_t kMaxOperations = 128;  ///< etcd's default; conditions count alike.

  std::vector<Compare> conditions;
  std::vector<Operation> success;
  std::vector<Operation> failure;
  bool operator==(const Transaction&) const = default;
};

struct TransactionReply {
  bool succeeded = false;  ///< The conditions held.
  Revision revision;  ///< Revision of the data after the transaction, which is that of its puts.
  std::vector<std::vector<KeyValue>> found;  ///< One list per Get that was executed, in order.
  std::vector<std::int64_t> counts;          ///< How many keys each of them has in its range.
  bool operator==(const TransactionReply&) const = default;
};

struct RangeReply {
  std::vector<KeyValue> entries;  ///< In the order of their keys.
  Revision revision;              ///< Revision of the data that was read.
  bool has_more = false;          ///< The reply was limited; entries behind the last one remain.
};

/// One change of a key. A deleted key has no value, and `created` is zero.
struct WatchEvent {
  KeyValue entry;
  bool is_deleted = false;
  bool operator==(const WatchEvent&) const = default;
};

}  // namespace leasehold::etcd
