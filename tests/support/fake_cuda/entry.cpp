#include "tests/support/fake_cuda/entry.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "tests/support/fake_cuda/executor.hpp"
#include "tests/support/fake_cuda/fake_cuda.hpp"

namespace leasehold::fake_cuda {
namespace {

std::atomic<pid_t> initialised_by{0};
std::atomic<int> retained{0};
std::atomic<CUresult> lost_by{CUDA_SUCCESS};
thread_local CUcontext current = nullptr;

// Leaked, because a detached executor may use it while the process ends.
struct Calls {
  std::mutex mutex;
  std::map<std::string, std::pair<std::uint64_t, CUresult>> to_fail;  ///< After that many calls.
  std::map<std::string, std::uint64_t> made;
};
Calls& calls() {
  static auto& all = *new Calls;
  return all;
}

/// The driver's lock. Without a hold no call keeps it for long, so no call waits.
struct DriverLock {
  std::mutex mutex;
  std::condition_variable released;
  std::string keeper;  ///< The function whose next call keeps the lock; empty: none.
  bool is_kept = false;
  std::uint64_t n_releases = 0;
  std::uint64_t n_waiting = 0;
};
DriverLock& driver_lock() {
  static auto& one = *new DriverLock;
  return one;
}

void pass_driver_lock(const char* function) {
  DriverLock& driver = driver_lock();
  std::unique_lock lock(driver.mutex);
  driver.is_kept |= driver.keeper == function;
  if (!driver.is_kept) return;
  ++driver.n_waiting;
  driver.released.wait(lock,
                       [&, before = driver.n_releases] { return driver.n_releases != before; });
  --driver.n_waiting;
}

int number_of(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

/// FAKE_CUDA_FAIL names the function that this machine does not support.
bool is_forbidden(const char* function) {
  static const std::string forbidden = [] {
    const char* const text = std::getenv("FAKE_CUDA_FAIL");
    return std::string(text == nullptr ? "" : text);
  }();
  return !forbidden.empty() && forbidden == function;
}

/// Counts the call and returns the failure planted for it, if any.
CUresult note_call(const char* function) {
  const std::scoped_lock lock(calls().mutex);
  ++calls().made[function];
  if (is_forbidden(function)) return CUDA_ERROR_NOT_SUPPORTED;
  const auto planted = calls().to_fail.find(function);
  if (planted == calls().to_fail.end()) return CUDA_SUCCESS;
  if (planted->second.first > 0) {
    --planted->second.first;
    return CUDA_SUCCESS;
  }
  return calls().to_fail.extract(planted).mapped().second;
}

}  // namespace

const Card& card() {
  static const Card made{
      .memory_bytes = static_cast<std::size_t>(number_of("FAKE_CUDA_MEMORY_MIB", 256)) << 20,
      .devices = number_of("FAKE_CUDA_DEVICES", 1),
      .compute_capability = number_of("FAKE_CUDA_CC", 90),
      .driver_version = number_of("FAKE_CUDA_DRIVER", 13000)};
  return made;
}

CUresult enter(const char* function, Needs needs) {
  pass_driver_lock(function);
  if (const CUresult result = note_call(function); result != CUDA_SUCCESS) return result;
  if (needs == Needs::Nothing) return CUDA_SUCCESS;
  // A child of fork cannot use the driver before it executes another program.
  if (initialised_by != ::getpid()) return CUDA_ERROR_NOT_INITIALIZED;
  if (needs == Needs::Initialised) return CUDA_SUCCESS;
  if (const CUresult result = lost(); result != CUDA_SUCCESS) return result;
  if (needs == Needs::Device) return CUDA_SUCCESS;
  if (current == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return retained == 0 ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

void set_initialised() {
  initialised_by = ::getpid();
}

void lose(CUresult reason) {
  CUresult none = CUDA_SUCCESS;
  lost_by.compare_exchange_strong(none, reason);
  Executor::get().clear_all();
}

CUresult lost() {
  return lost_by;
}

void restore() {
  lost_by = CUDA_SUCCESS;
}

CUcontext primary_context() {
  static int context = 0;
  return reinterpret_cast<CUcontext>(&context);
}

CUcontext retain_context() {
  ++retained;
  return primary_context();
}

bool release_context() {
  int before = retained;
  while (before > 0 && !retained.compare_exchange_weak(before, before - 1)) {
  }
  return before > 0;
}

bool has_context() {
  return retained > 0;
}

int compute_mode() {
  return number_of("FAKE_CUDA_COMPUTE_MODE", CU_COMPUTEMODE_DEFAULT);
}

bool is_under_mps() {
  return number_of("FAKE_CUDA_MPS", 0) != 0;
}

int shared_memory_kib() {
  return number_of("FAKE_CUDA_SHARED_KIB", 227);
}

void set_current_context(CUcontext context) {
  current = context;
}

}  // namespace leasehold::fake_cuda

using namespace leasehold::fake_cuda;

extern "C" {

void fake_cuda_hold() {
  Executor::get().hold();
}

std::uint64_t fake_cuda_run(std::uint64_t n) {
  return Executor::get().run(n);
}

void fake_cuda_release() {
  Executor::get().release();
}

std::uint64_t fake_cuda_kernel_count(const char* kernel) {
  return Executor::get().kernel_count(kernel);
}

std::uint64_t fake_cuda_call_count(const char* function) {
  const std::scoped_lock lock(calls().mutex);
  if (function != nullptr) return calls().made[function];
  std::uint64_t sum = 0;
  for (const auto& [name, count] : calls().made) sum += count;
  return sum;
}

void fake_cuda_fail_next(const char* function, int result) {
  fake_cuda_fail_after(0, function, result);
}

void fake_cuda_fail_after(std::uint64_t n, const char* function, int result) {
  const std::scoped_lock lock(calls().mutex);
  calls().to_fail[function] = {n, static_cast<CUresult>(result)};
}

void fake_cuda_hold_calls(const char* function) {
  const std::scoped_lock lock(driver_lock().mutex);
  driver_lock().keeper = function;
}

void fake_cuda_release_calls() {
  DriverLock& driver = driver_lock();
  const std::scoped_lock lock(driver.mutex);
  driver.keeper.clear();
  driver.is_kept = false;
  ++driver.n_releases;
  driver.released.notify_all();
}

std::uint64_t fake_cuda_held_calls() {
  const std::scoped_lock lock(driver_lock().mutex);
  return driver_lock().n_waiting;
}

void fake_cuda_lose_device() {
  lose(CUDA_ERROR_ILLEGAL_ADDRESS);
}

void fake_cuda_restore_device() {
  Executor::get().clear_all();
  restore();
}

const char* fake_cuda_directory() {
  static const std::string directory = [] {
    Dl_info info{};
    ::dladdr(reinterpret_cast<void*>(&fake_cuda_directory), &info);
    const std::string path = info.dli_fname == nullptr ? "" : info.dli_fname;
    return path.substr(0, path.rfind('/'));
  }();
  return directory.c_str();
}
}
