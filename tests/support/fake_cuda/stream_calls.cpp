/// Streams, events, copies.
///
/// As on the real driver, a copy from or to memory that is not pinned finishes its host side before
/// the call returns; a copy with pinned memory reads and writes when the stream reaches it.
#include <cstring>
#include <set>

#include "tests/support/fake_cuda/address_space.hpp"
#include "tests/support/fake_cuda/entry.hpp"
#include "tests/support/fake_cuda/executor.hpp"
#include "tests/support/fake_cuda/unfinished_writes.hpp"

using namespace leasehold::fake_cuda;

namespace {

struct Events {
  static Events& get() {
    static auto& all = *new Events;
    return all;
  }
  std::mutex mutex;
  std::map<CUevent, std::shared_ptr<Mark>> known;  ///< Null: never recorded, so done.
  std::uintptr_t newest = 0;
};

/// The device memory may have been unmapped since the copy was queued.
CUresult copy_now(void* to, const void* from, std::size_t bytes, CUdeviceptr device) {
  if (!is_device_memory(device, bytes)) return CUDA_ERROR_ILLEGAL_ADDRESS;
  std::memcpy(to, from, bytes);
  UnfinishedWrites::get().finish(to, bytes);
  return CUDA_SUCCESS;
}

/// Queues work of the card in the stream.
CUresult queue_work(CUstream handle, std::function<CUresult()> work) {
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Executor::get().queue(stream, {.work = std::move(work)});
  return CUDA_SUCCESS;
}

/// Returns the newest recording of an event in `mark`; null if there is none.
CUresult newest_mark(CUevent event, std::shared_ptr<Mark>& mark) {
  const std::scoped_lock lock(Events::get().mutex);
  const auto at = Events::get().known.find(event);
  if (at == Events::get().known.end()) return CUDA_ERROR_INVALID_HANDLE;
  mark = at->second;
  return CUDA_SUCCESS;
}

}  // namespace

namespace leasehold::fake_cuda {

Stream* stream_of(CUstream handle) {
  if (handle == nullptr) return Executor::get().default_stream();
  auto* const stream = reinterpret_cast<Stream*>(handle);
  return Executor::get().knows(stream) ? stream : nullptr;
}

}  // namespace leasehold::fake_cuda

extern "C" {

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  FAKE_CUDA_ENTER(cuStreamCreateWithPriority, Context);
  if ((flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  *stream = reinterpret_cast<CUstream>(Executor::get().create_stream(priority));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamDestroy(CUstream stream) {
  FAKE_CUDA_ENTER(cuStreamDestroy, Context);
  return Executor::get().destroy_stream(reinterpret_cast<Stream*>(stream))
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CUDAAPI cuStreamSynchronize(CUstream handle) {
  FAKE_CUDA_ENTER(cuStreamSynchronize, Context);
  const Stream* const stream = stream_of(handle);
  if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Executor::get().wait_empty(stream);
  return lost();
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream handle, CUevent event, unsigned) {
  FAKE_CUDA_ENTER(cuStreamWaitEvent, Context);
  Stream* const stream = stream_of(handle);
  std::shared_ptr<Mark> mark;
  if (stream == nullptr || newest_mark(event, mark) != CUDA_SUCCESS)
    return CUDA_ERROR_INVALID_HANDLE;
  if (mark != nullptr) Executor::get().queue(stream, {.wait = mark});
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventCreate(CUevent* event, unsigned) {
  FAKE_CUDA_ENTER(cuEventCreate, Context);
  const std::scoped_lock lock(Events::get().mutex);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a handle is a number that names an event
  *event = reinterpret_cast<CUevent>(++Events::get().newest);
  Events::get().known[*event] = nullptr;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventDestroy(CUevent event) {
  FAKE_CUDA_ENTER(cuEventDestroy, Context);
  const std::scoped_lock lock(Events::get().mutex);
  return Events::get().known.erase(event) > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CUDAAPI cuEventRecord(CUevent event, CUstream handle) {
  FAKE_CUDA_ENTER(cuEventRecord, Context);
  Stream* const stream = stream_of(handle);
  const std::scoped_lock lock(Events::get().mutex);
  const auto at = Events::get().known.find(event);
  if (stream == nullptr || at == Events::get().known.end()) return CUDA_ERROR_INVALID_HANDLE;
  at->second = std::make_shared<Mark>();
  Executor::get().queue(stream, {.record = at->second});
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventQuery(CUevent event) {
  FAKE_CUDA_ENTER(cuEventQuery, Context);
  std::shared_ptr<Mark> mark;
  if (newest_mark(event, mark) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_HANDLE;
  if (mark == nullptr || Executor::get().is_done(mark)) return CUDA_SUCCESS;
  return CUDA_ERROR_NOT_READY;
}

CUresult CUDAAPI cuEventSynchronize(CUevent event) {
  FAKE_CUDA_ENTER(cuEventSynchronize, Context);
  std::shared_ptr<Mark> mark;
  if (newest_mark(event, mark) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_HANDLE;
  if (mark != nullptr) Executor::get().wait_done(mark);
  return lost();
}

CUresult CUDAAPI cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  FAKE_CUDA_ENTER(cuEventElapsedTime, Context);
  std::shared_ptr<Mark> first;
  std::shared_ptr<Mark> last;
  if (newest_mark(start, first) != CUDA_SUCCESS || newest_mark(end, last) != CUDA_SUCCESS ||
      first == nullptr || last == nullptr)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!Executor::get().is_done(first) || !Executor::get().is_done(last))
    return CUDA_ERROR_NOT_READY;
  *milliseconds = std::chrono::duration<float, std::milli>(last->at - first->at).count();
  return CUDA_SUCCESS;
}

/// Infers the kind of each address. Stricter than the driver, which also stages memory that is not
/// pinned: both ends are the card's or pinned when the call is made and when the copy runs.
CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                               CUstream handle) {
  FAKE_CUDA_ENTER(cuMemcpyAsync, Context);
  const auto reaches = [bytes](CUdeviceptr at) {
    return is_device_memory(at, bytes) || is_pinned(pointer(at), bytes);
  };
  if (!reaches(to) || !reaches(from)) return CUDA_ERROR_INVALID_VALUE;
  return queue_work(handle, [=] {
    if (!reaches(to) || !reaches(from)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    std::memcpy(pointer(to), pointer(from), bytes);
    UnfinishedWrites::get().finish(pointer(to), bytes);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes,
                                   CUstream handle) {
  FAKE_CUDA_ENTER(cuMemcpyHtoDAsync, Context);
  if (!is_device_memory(to, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (is_pinned(from, bytes))
    return queue_work(handle, [=] { return copy_now(pointer(to), from, bytes, to); });
  const auto* const begin = static_cast<const std::byte*>(from);
  return queue_work(handle, [=, staged = std::vector<std::byte>(begin, begin + bytes)] {
    return copy_now(pointer(to), staged.data(), bytes, to);
  });
}

CUresult CUDAAPI cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream handle) {
  FAKE_CUDA_ENTER(cuMemcpyDtoHAsync, Context);
  if (!is_device_memory(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult queued =
      queue_work(handle, [=] { return copy_now(to, pointer(from), bytes, from); });
  if (queued != CUDA_SUCCESS || is_pinned(to, bytes)) return queued;
  Executor::get().wait_empty(stream_of(handle));
  return lost();
}

CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                   CUstream handle) {
  FAKE_CUDA_ENTER(cuMemcpyDtoDAsync, Context);
  if (!is_device_memory(to, bytes) || !is_device_memory(from, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  return queue_work(handle, [=] {
    if (!is_device_memory(from, bytes)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    return copy_now(pointer(to), pointer(from), bytes, to);
  });
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr at, unsigned char value, std::size_t bytes,
                                 CUstream handle) {
  FAKE_CUDA_ENTER(cuMemsetD8Async, Context);
  if (!is_device_memory(at, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return queue_work(handle, [=] {
    if (!is_device_memory(at, bytes)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    std::memset(pointer(at), value, bytes);
    UnfinishedWrites::get().finish(pointer(at), bytes);
    return CUDA_SUCCESS;
  });
}
}
