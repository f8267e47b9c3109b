#include "tests/support/simt/async_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace leasehold::simt {
namespace {

/// The end of the last group that must be finished if at most `pending` groups may be unfinished.
std::size_t end_of_waited(const std::vector<std::size_t>& groups, std::size_t pending) {
  return groups.size() > pending ? groups[groups.size() - 1 - pending] : 0;
}

}  // namespace

void AsyncWork::begin(unsigned threads, bool early) {
  early_ = early;
  n_threads_ = threads;
  if (threads_.size() < threads) threads_.resize(threads);
  for (unsigned i = 0; i < threads; ++i) {
    Thread& thread = threads_[i];
    thread.copies.clear();
    thread.copied = 0;
    thread.copy_groups.clear();
    thread.product_groups.clear();
    thread.waited = 0;
    thread.is_copying = thread.has_unfenced_copies = thread.is_fenced = false;
  }
  warpgroups_.assign((threads + kWarpgroup - 1) / kWarpgroup, {});
}

void AsyncWork::copy(unsigned thread, void* to, const void* from, std::size_t size_bytes) {
  threads_[thread].is_copying = true;
  if (early_) {
    std::memcpy(to, from, size_bytes);
  } else {
    threads_[thread].copies.push_back({to, from, size_bytes});
  }
}

void AsyncWork::commit_copies(unsigned thread) {
  threads_[thread].copy_groups.push_back(threads_[thread].copies.size());
}

void AsyncWork::wait_copies(unsigned thread, std::size_t pending) {
  Thread& one = threads_[thread];
  const std::size_t end = end_of_waited(one.copy_groups, pending);
  for (; one.copied < end; ++one.copied)
    std::memcpy(one.copies[one.copied].to, one.copies[one.copied].from,
                one.copies[one.copied].size_bytes);
  one.has_unfenced_copies |= one.is_copying;
  one.is_copying &= pending > 0;
}

void AsyncWork::check_ready(unsigned warpgroup) const {
  for (unsigned i = 0; i < n_threads_; ++i) {
    if (threads_[i].has_unfenced_copies)
      fail_thread(fmt::format(
          "wgmma without fence_proxy_async in thread {}, which copied to shared memory", i));
    if (i / kWarpgroup == warpgroup && !threads_[i].is_fenced)
      fail_thread(fmt::format("wgmma without wgmma_fence in thread {}", i));
  }
}

void AsyncWork::queue(unsigned warpgroup, const QueuedProduct& product) {
  check_ready(warpgroup);
  Warpgroup& group = warpgroups_[warpgroup];
  ++group.queued;
  if (early_) {
    ++group.done;
    multiply(product);
  } else {
    group.products.push_back(product);
  }
}

void AsyncWork::commit_products(unsigned thread) {
  threads_[thread].product_groups.push_back(warpgroups_[thread / kWarpgroup].queued);
}

/// The first waiting lane completes the whole warpgroup's products.
void AsyncWork::wait_products(unsigned thread, std::size_t pending) {
  Thread& one = threads_[thread];
  one.is_fenced = false;
  Warpgroup& group = warpgroups_[thread / kWarpgroup];
  one.waited = std::max(one.waited, end_of_waited(one.product_groups, pending));
  if (one.waited <= group.done) return;
  const auto end = group.products.begin() + static_cast<std::ptrdiff_t>(one.waited - group.done);
  std::for_each(group.products.begin(), end, &multiply);
  group.products.erase(group.products.begin(), end);
  group.done = one.waited;
}

bool AsyncWork::has_unwaited_products(unsigned thread) const {
  return threads_[thread].waited < warpgroups_[thread / kWarpgroup].queued;
}

}  // namespace leasehold::simt
