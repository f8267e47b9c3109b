/// The hash chain of audit records, and how it is checked.
///
/// A record's content is one JSON object in canonical form: members sorted by name, no spaces. Two
/// of its members are `sequence`, one more than that of the record before, and `previous`, the hash
/// of the record before. The hash of a record is the SHA-256 of its content, as 64 lower-case hex
/// digits. So a reader of an export can check the records without other data.
///
/// The chain reveals changed records. A process that can write to the state directory can build a
/// new chain, though; only a hash that was kept elsewhere reveals that.
/// Pure. Threads: any. Source: FIPS 180-4, by libsodium's crypto_hash_sha256.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::audit {

/// The position of one record: the newest of a chain, or the last one that was removed from its
/// beginning.
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

/// A fault at one record, and what to do about it.
struct Finding {
  std::uint64_t sequence = 0;
  std::string problem;
  std::string next;
};

/// Checks records in the order of their sequence numbers.
class ChainCheck {
 public:
  static constexpr std::size_t kMaxFindings = 100;  ///< Further findings are only counted.

  /// `removed`: the last record that retention removed. `head`: the newest record, from a source
  /// other than the records.
  ChainCheck(Link removed, Link head) : last_(std::move(removed)), head_(std::move(head)) {}

  void add(const Record& record);
  /// Skips the records up to `removed`, which retention removed while the chain was read.
  void skip_to(const Link& removed);
  /// Call after the last record was added: compares it with the head.
  void finish();

  const std::vector<Finding>& findings() const { return findings_; }
  std::uint64_t finding_count() const { return finding_count_; }
  std::uint64_t records() const { return records_; }
  const Link& last() const { return last_; }

 private:
  void add_finding(std::uint64_t sequence, std::string problem, std::string next);
  void check_place(const Record& record);

  Link last_;
  Link head_;
  bool is_linked_ = true;  // `last_` is sound, so the next record must hold its hash
  std::uint64_t records_ = 0;
  std::uint64_t finding_count_ = 0;
  std::vector<Finding> findings_;
};

}  // namespace leasehold::audit
