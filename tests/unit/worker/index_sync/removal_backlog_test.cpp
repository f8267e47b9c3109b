#include "worker/index_sync/removal_backlog.hpp"

#include <catch2/catch.hpp>

namespace leasehold {
namespace {

using BacklogIds = std::vector<RequestId>;
const TenantId kTenant{"ann"};
const RequestId kA{"a"};
const RequestId kB{"b"};
const RequestId kC{"c"};

RemovalBacklog backlog_with(const BacklogIds& ended, const BacklogLimits& limits = {}) {
  RemovalBacklog backlog(limits);
  for (const RequestId& id : ended) backlog.add_ended(kTenant, id);
  return backlog;
}

}  // namespace

TEST_CASE("removal backlog: ids are sent in order, once, until they are confirmed") {
  RemovalBacklog backlog = backlog_with({kA, kB, kA, kC}, {.max_batch = 2});
  CHECK(backlog.batch() == BacklogIds{kA, kB});
  CHECK(backlog.batch() == BacklogIds{kA, kB});
  backlog.confirm(BacklogIds{kA, kB});
  CHECK(backlog.batch() == BacklogIds{kC});
  backlog.confirm(BacklogIds{kC});
  CHECK_FALSE(backlog.has_pending());
}

TEST_CASE("removal backlog: an id that lives again is neither sent nor reconciled") {
  RemovalBacklog backlog = backlog_with({kA, kB});
  backlog.confirm(BacklogIds{kB});
  backlog.add_live(kA);
  backlog.add_live(kB);
  CHECK_FALSE(backlog.has_pending());
  CHECK(backlog.reconcile(BacklogIds{kA, kB}) == 0);
}

TEST_CASE("removal backlog: listed ids are sent again when they ended here, others are not") {
  RemovalBacklog backlog = backlog_with({kA, kB});
  backlog.confirm(BacklogIds{kA});
  CHECK(backlog.reconcile(BacklogIds{kA, kB, kC, kA}) == 1);
  CHECK(backlog.batch() == BacklogIds{kB, kA});
  backlog.confirm(BacklogIds{kA, kB});
  backlog.forget_confirmed();
  CHECK(backlog.reconcile(BacklogIds{kA, kB}) == 0);
}

TEST_CASE("removal backlog: an id that the index lists without its prefix is the one that ended") {
  RemovalBacklog backlog = backlog_with({{"cmpl-a"}, {"chatcmpl-b"}, {"batch-c"}, {"other-d"}, kA});
  backlog.confirm(backlog.batch());
  CHECK(backlog.reconcile(BacklogIds{{"a"}, {"b"}, {"c"}, {"d"}, {"chatcmpl-b"}}) == 4);
  CHECK(backlog.batch() == BacklogIds{kA, {"cmpl-a"}, {"chatcmpl-b"}, {"batch-c"}});
}

TEST_CASE("removal backlog: beyond its bounds the oldest ids are dropped and counted") {
  RemovalBacklog backlog = backlog_with({kA, kB, kC}, {.max_pending = 2, .max_ended = 2});
  CHECK(backlog.batch() == BacklogIds{kB, kC});
  CHECK(backlog.take_dropped() == BacklogIds{kA});
  CHECK(backlog.take_dropped().empty());
  backlog.confirm(BacklogIds{kB, kC});
  CHECK(backlog.reconcile(BacklogIds{kA, kB, kC}) == 2);
}

TEST_CASE("removal backlog: a tenant's ids cost no other tenant its own") {
  RemovalBacklog backlog({.max_pending = 4, .max_ended = 4});
  backlog.add_ended({"bob"}, kB);
  for (int i = 0; i < 100; ++i) backlog.add_ended({"greedy"}, {"r" + std::to_string(i)});
  CHECK(backlog.batch() == BacklogIds{kB, {"r97"}, {"r98"}, {"r99"}});
  CHECK(backlog.take_dropped().size() == 97);
  backlog.confirm(backlog.batch());
  CHECK(backlog.reconcile(BacklogIds{kB, {"r0"}, {"r99"}}) == 2);  // r0 is forgotten
}

}  // namespace leasehold
