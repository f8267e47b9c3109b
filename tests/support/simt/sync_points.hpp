/// Where threads of a block wait for each other. For the words of simt.hpp, not for tests.
///
/// Threads: called from within a kernel only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace leasehold::simt {

class AsyncWork;

/// Does a collective's work once all members are there; the last to arrive calls it. Member i is
/// what lane i brought, null if it is none of them.
using Finish = void (*)(std::span<void* const> members);

/// What threads wait at. Two that meet are at the same one, with the same mask.
struct SyncPoint {
  const char* name;
  Finish finish;  ///< Null: only to meet.
};

/// All threads of the block.
void arrive_and_wait_block();
/// The lanes in `mask` of this warp. The caller is one.
void arrive_and_wait_warp(const SyncPoint& sync_point, std::uint32_t mask, void* mine);
/// The four warps of this warpgroup.
void arrive_and_wait_warpgroup(const SyncPoint& sync_point, void* mine);

unsigned running_thread();  ///< Its number in the block.
AsyncWork& async_work();
std::byte* dynamic_shared_memory();
void notify_condition(std::uint64_t handle, std::uint32_t value);

/// Ends the launch; what was wrong goes into its error.
[[noreturn]] void fail_thread(const std::string& what);

}  // namespace leasehold::simt
