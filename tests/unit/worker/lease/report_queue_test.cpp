#include "worker/lease/report_queue.hpp"

#include <catch2/catch.hpp>

using leasehold::ReportQueue;

TEST_CASE("report queue: take returns the oldest reports, at most one batch") {
  ReportQueue queue;
  for (std::size_t i = 0; i < ReportQueue::kMaxBatch + 2; ++i) queue.push(std::to_string(i));

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
  for (std::size_t i = 0; i < ReportQueue::kMaxKept + 10; ++i) queue.push(std::to_string(i));

  CHECK(queue.take().front() == "10");
}
