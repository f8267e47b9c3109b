/// Synchronisation of the threads of a block. For the functions of simt.hpp, not for tests.
///
/// Threads: called from within a kernel only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "kernels/cuda/device/shared_barrier.hpp"

namespace leasehold::simt {

class AsyncWork;
struct BulkCopy;

/// Does a collective's work when all members have arrived; the last one to arrive calls it. Member
/// i is the argument of lane i, null if that lane is not a member.
using Finish = void (*)(std::span<void* const> members);

/// A synchronisation point. Threads that wait for each other pass the same one with the same mask.
struct SyncPoint {
  const char* name;
  Finish finish;  ///< Null: the threads only wait for each other.
};

/// All threads of the block.
void arrive_and_wait_block();
/// The lanes in `mask` of this warp, including the caller.
void arrive_and_wait_warp(const SyncPoint& sync_point, std::uint32_t mask, void* mine);
/// The four warps of this warpgroup.
void arrive_and_wait_warpgroup(const SyncPoint& sync_point, void* mine);

/// Barriers in shared memory; see bulk_copy.cuh for their meaning.
void init_barrier(device::SharedBarrier& at, std::uint32_t arrivals);
void arrive_at_barrier(device::SharedBarrier& at, std::uint32_t expected_bytes);
void wait_for_barrier(device::SharedBarrier& at, std::uint32_t parity);
void copy_bulk(device::SharedBarrier& at, const BulkCopy& copy);
void await_previous_kernel();

unsigned running_thread();  ///< The thread's index in the block.
AsyncWork& async_work();
std::byte* dynamic_shared_memory();
void notify_condition(std::uint64_t handle, std::uint32_t value);
void notify_load(const std::byte* at, std::size_t size_bytes);

/// Ends the launch with `what` as its error.
[[noreturn]] void fail_thread(const std::string& what);

}  // namespace leasehold::simt
