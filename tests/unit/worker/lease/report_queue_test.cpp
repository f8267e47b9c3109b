#include "worker/lease/report_queue.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <iterator>

using leasehold::ReportQueue;
using leasehold::TenantId;

namespace {
const TenantId kAnn{"ann"};
}

TEST_CASE("report queue: take returns the oldest reports, at most one batch") {
  ReportQueue queue;
  for (std::size_t i = 0; i < ReportQueue::kMaxBatch + 2; ++i) queue.push(kAnn, std::to_string(i));

  const auto first = queue.take();
  const auto rest = queue.take();

  CHECK(first.size() == ReportQueue::kMaxBatch);
  CHECK(first.front() == "0");
  CHECK(rest == std::vector<std::string>{"256", "257"});
  CHECK(queue.empty());
  CHECK(queue.take().empty());
}

TEST_CASE("report queue: a full queue drops its oldest reports") {
  ReportQueue queue;
  for (std::size_t i = 0; i < ReportQueue::kMaxKept + 10; ++i) queue.push(kAnn, std::to_string(i));

  CHECK(queue.take().front() == "10");
  CHECK(queue.take_dropped() == 10);
}

TEST_CASE("report queue: a tenant with many reports costs no other tenant its own") {
  ReportQueue queue;
  queue.push({"bob"}, "bob's first");
  queue.push({}, "the worker's");
  for (std::size_t i = 0; i < 2 * ReportQueue::kMaxKept; ++i) queue.push(kAnn, std::to_string(i));
  queue.push({"bob"}, "bob's second");

  std::vector<std::string> reports;
  while (!queue.empty()) std::ranges::move(queue.take(), std::back_inserter(reports));
  CHECK(reports.size() == ReportQueue::kMaxKept);
  CHECK(reports[0] == "bob's first");
  CHECK(reports[1] == "the worker's");
  CHECK(reports.back() == "bob's second");
  CHECK(queue.take_dropped() == ReportQueue::kMaxKept + 3);
}
