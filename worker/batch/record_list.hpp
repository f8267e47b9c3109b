/// A page of the records of an owner. Copies only the records of the page.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "worker/batch/batch_record.hpp"

namespace leasehold::batch {

/// The newest records come first. A page begins after the record whose id is `after`; for an id
/// that is not in the list it is empty.
struct RecordQuery {
  std::string after{};  ///< Empty: from the beginning.
  std::size_t limit = 20;
  bool is_oldest_first = false;
  std::string purpose{};  ///< Only files of this purpose; empty: all.
};

template <class Record>
struct Page {
  std::vector<Record> records;
  bool has_more = false;
};

inline std::int64_t created_at(const FileRecord& file) {
  return file.created_at;
}
inline std::int64_t created_at(const BatchRecord& batch) {
  return batch.created_at();
}
inline bool is_meant(const FileRecord& file, const RecordQuery& query) {
  return query.purpose.empty() || file.purpose == query.purpose;
}
inline bool is_meant(const BatchRecord&, const RecordQuery&) {
  return true;
}

template <class Record>
Page<Record> page_of(const std::map<std::string, Record>& records, const Owner& owner,
                     const RecordQuery& query) {
  std::vector<const Record*> found;
  for (const auto& [id, record] : records)
    if (record.owner == owner && is_meant(record, query)) found.push_back(&record);
  std::ranges::stable_sort(found, std::ranges::greater{},
                           [](const Record* record) { return created_at(*record); });
  if (query.is_oldest_first) std::ranges::reverse(found);
  auto next = found.begin();
  if (!query.after.empty()) {
    next = std::ranges::find(found, query.after, &Record::id);
    if (next != found.end()) ++next;
  }
  Page<Record> page;
  for (; next != found.end() && page.records.size() < query.limit; ++next)
    page.records.push_back(**next);
  page.has_more = next != found.end();
  return page;
}

template <class Record>
std::size_t count_of(const std::map<std::string, Record>& records, const Owner& owner) {
  return static_cast<std::size_t>(
      std::ranges::count_if(records, [&](const auto& each) { return each.second.owner == owner; }));
}

}  // namespace leasehold::batch
