/// A temporary state directory, and rows for a journal.
#pragma once

#include <sqlite3.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <future>
#include <string>

#include "broker/journal/sqlite_journal.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::journal {

inline constexpr std::int64_t kNowUnixS = 1'800'000'000;  // in January 2027

class StateDir {
 public:
  std::string path() const { return directory_.path(); }
  std::string file(const std::string& name) const { return directory_.file(name); }

 private:
  TemporaryDirectory directory_ = TemporaryDirectory::create("journal").value();
};

inline std::unique_ptr<SqliteJournal> opened(const StateDir& dir, AuditLimits limits = {}) {
  return SqliteJournal::open(dir.path(), limits).value();
}

/// Waits for the signed head.
inline Result<wire::DsseEnvelope> signed_head(Journal& journal,
                                              const wire::AuditHeadQuery& query = {}) {
  std::promise<Result<wire::DsseEnvelope>> head;
  journal.audit_head(query, [&](auto signed_head) { head.set_value(std::move(signed_head)); });
  return head.get_future().get();
}

/// Runs SQL on a database file without the journal.
inline void run_sql(const std::string& path, const char* sql) {
  sqlite3* handle = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &handle) == SQLITE_OK);
  REQUIRE(sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(handle);
}

inline WorkerRow worker_row(std::uint64_t id) {
  return {.id = {id},
          .index = {id % 64},
          .name = "w" + std::to_string(id),
          .process = {.pid = 1000, .start_ticks = 77},
          .uid = 5,
          .state = WorkerState::Ready,
          .model = "m",
          .address = "/run/w",
          .blocks_per_extent = 8};
}

inline LeaseRow lease_row(std::uint32_t slot, LeaseState state = LeaseState::Live) {
  const bool live = state == LeaseState::Live;
  return {.id = {slot, 3},
          .worker = {1},
          .state = state,
          .reason = live ? RevokeReason::None : RevokeReason::Operator,
          .revoked_ns = live ? 0 : 11,
          .fenced_ns = state == LeaseState::Fenced ? 12 : 0,
          .proof = state == LeaseState::Fenced ? "LaunchQuiet" : "",
          .tenant = {"a"},
          .holder = {.pid = 2000, .start_ticks = 88},
          .request = {.uid = 6, .request_id = "r", .digest = ~0ull},
          .ttl_ns = 10,
          .deadline_ns = 20,
          .drain_deadline_ns = 30,
          .drain_reason = RevokeReason::PreemptedByPriority,
          .last_deadline_ns = 40,
          .charged_blocks = 8,
          .model = "m",
          .part = "blk.0",
          .replaces = {9, 1},
          .replaced_by = {10, 2},
          .granted_ns = 9,
          .api_key = {"0f"}};
}

}  // namespace leasehold::journal
