/// The hash chain of audit records, and how it is checked.
///
/// A record's content is one JSON object in canonical form: members sorted by name, no spaces. Two
/// of its members are `sequence`, one more than that of the record before, and `previous`, the hash
/// of the record before. Its hash is the SHA-256 of the content, as 64 lower-case hex digits. So a
/// reader of an export needs nothing but the records to check them.
///
/// The chain shows changes, but a process that can write to the state directory can make a new one:
/// only a hash that was kept elsewhere shows that.
/// Pure. Threads: any. Source: FIPS 180-4, by libsodium's crypto_hash_sha256.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::audit {

/// The end of a chain, or the last record that was removed from its beginning.
struct Link {
  std::uint64_t sequence = 0;  ///< 0: before the first record.
  std::string hash = std::string(64, '0');
  bool operator==(const Link&) const = default;
};

struct Record {
  std::uint64_t sequence = 0;
  std::string content;
  std::string hash;
};

/// Hex SHA-256.
std::string hash_of(std::string_view content);

/// The record after `last`. `fields` is an object without `sequence` and `previous`.
Record next_record(const Link& last, nlohmann::json fields);

/// What is wrong at one record, and what to do.
struct Finding {
  std::uint64_t sequence = 0;
  std::string problem;
  std::string next;
};

/// Checks records in the order of their sequence numbers.
class ChainCheck {
 public:
  static constexpr std::size_t kMaxFindings = 100;  ///< Further ones are counted only.

  /// `removed`: the last record that retention removed. `head`: the newest record, as it is known
  /// apart from the records.
  ChainCheck(Link removed, Link head) : last_(std::move(removed)), head_(std::move(head)) {}

  void add(const Record& record);
  /// Retention removed the records up to this one while the chain was read.
  void skip_to(const Link& removed);
  /// All records have been added: compares their end with the head.
  void finish();

  const std::vector<Finding>& findings() const { return findings_; }
  std::uint64_t finding_count() const { return finding_count_; }
  std::uint64_t records() const { return records_; }
  const Link& last() const { return last_; }

 private:
  void find(std::uint64_t sequence, std::string problem, std::string next);
  void check_place(const Record& record);

  Link last_;
  Link head_;
  bool is_linked_ = true;  // `last_` is sound, so the next record must hold its hash
  std::uint64_t records_ = 0;
  std::uint64_t finding_count_ = 0;
  std::vector<Finding> findings_;
};

}  // namespace leasehold::audit
