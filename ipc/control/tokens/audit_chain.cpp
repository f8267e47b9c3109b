#include "ipc/control/tokens/audit_chain.hpp"

#include <fmt/format.h>
#include <sodium.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/hex.hpp"

namespace leasehold::audit {
namespace {

using nlohmann::json;

constexpr const char* kCompare =
    "compare it with an earlier export or a backup of the state directory, and find out which "
    "process could write to that directory";
constexpr const char* kRestore =
    "take the missing records from an earlier export or a backup of the state directory; the gap "
    "stays in this chain";

std::string dumped(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string range_text(std::uint64_t first, std::uint64_t last) {
  return first == last ? fmt::format("record {} is", first)
                       : fmt::format("records {} to {} are", first, last);
}

/// The position of a record according to its content.
struct Place {
  std::uint64_t sequence = 0;
  std::string previous;
};
std::optional<Place> place_of(const std::string& content) {
  const json object = json::parse(content, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  const auto sequence = object.find("sequence");
  const auto previous = object.find("previous");
  if (sequence == object.end() || !sequence->is_number_unsigned()) return std::nullopt;
  if (previous == object.end() || !previous->is_string()) return std::nullopt;
  return Place{sequence->get<std::uint64_t>(), previous->get<std::string>()};
}

}  // namespace

std::string hash_of(std::string_view content) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash{};
  ::crypto_hash_sha256(hash.data(), reinterpret_cast<const unsigned char*>(content.data()),
                       content.size());
  return to_hex(hash);
}

Record next_record(const Link& last, json fields) {
  fields["sequence"] = last.sequence + 1;
  fields["previous"] = last.hash;
  std::string content = dumped(fields);
  std::string hash = hash_of(content);
  return {.sequence = last.sequence + 1, .content = std::move(content), .hash = std::move(hash)};
}

void ChainCheck::add_finding(std::uint64_t sequence, std::string problem, std::string next) {
  ++finding_count_;
  if (findings_.size() >= kMaxFindings) return;
  findings_.push_back({sequence, std::move(problem), std::move(next)});
}

void ChainCheck::add(const Record& record) {
  ++records_;
  if (record.sequence > last_.sequence + 1) {
    add_finding(last_.sequence + 1,
                range_text(last_.sequence + 1, record.sequence - 1) + " missing", kRestore);
    is_linked_ = false;
  }
  if (record.sequence <= last_.sequence) is_linked_ = false;
  const std::uint64_t before = finding_count_;
  check_place(record);
  const bool is_head = record.sequence == head_.sequence;
  if (finding_count_ == before && is_head && record.hash != head_.hash) {
    add_finding(
        record.sequence,
        fmt::format("record {} is not the one that the broker wrote: it and records before it "
                    "were replaced",
                    record.sequence),
        kCompare);
  }
  is_linked_ = finding_count_ == before;
  last_ = {.sequence = record.sequence, .hash = record.hash};
}

/// At most one finding for each record, so that one change is one finding.
void ChainCheck::check_place(const Record& record) {
  const std::uint64_t sequence = record.sequence;
  if (hash_of(record.content) != record.hash) {
    return add_finding(sequence,
                       fmt::format("record {} was changed: its hash does not match", sequence),
                       kCompare);
  }
  const auto place = place_of(record.content);
  if (!place) {
    return add_finding(sequence, fmt::format("record {} is not an audit record", sequence),
                       kCompare);
  }
  if (place->sequence != sequence) {
    return add_finding(sequence,
                       fmt::format("the order was changed: the place of record {} holds record {}",
                                   sequence, place->sequence),
                       kCompare);
  }
  if (!is_linked_ || place->previous == last_.hash) return;
  add_finding(last_.sequence,
              fmt::format("record {} was replaced: record {} holds another hash of it",
                          last_.sequence, sequence),
              kCompare);
}

void ChainCheck::skip_to(const Link& removed) {
  if (removed.sequence <= last_.sequence) return;
  last_ = removed;
  is_linked_ = true;
}

void ChainCheck::finish() {
  if (last_.sequence >= head_.sequence) return;
  add_finding(
      last_.sequence + 1,
      range_text(last_.sequence + 1, head_.sequence) + " missing at the end: the tail was cut off",
      kRestore);
}

}  // namespace leasehold::audit
