#include "kernels/cuda/launcher_mirror.hpp"

namespace leasehold::cuda {
namespace {

// The number of mirror values, more than the card can have unread. Within a step sequences only
// die, so a step writes at most kMaxStepSequences + 1 values, one of them before its first launch.
// A launch waits for all values written before it, and a step ends after its launches. So only
// those that one step wrote after its last launch, and those of the next step, are unread.
constexpr std::uint32_t kValues = 2 * kMaxStepSequences + 1;

}  // namespace

Result<LauncherMirror> LauncherMirror::create(const Context& context, CUstream stream) {
  LauncherMirror made(context);
  made.stream_ = TRY(create_stream(context, kHighestPriority));
  made.mirror_ = TRY(DeviceBuffer::allocate(context, sizeof(device::GateMirror)));
  made.values_ = TRY(PinnedBuffer::allocate(context, kValues * sizeof(device::GateMirror)));
  made.written_ = TRY(create_event(context));
  TRY(check(context.driver(),
            context.driver().cuMemsetD8Async(device_address(made.mirror_.data()), 0,
                                             made.mirror_.size_bytes(), stream),
            "clearing the gate's mirror"));
  return made;
}

CUresult LauncherMirror::write(SequenceMask live, CUstream stream) {
  auto* value = reinterpret_cast<device::GateMirror*>(values_.data()) + next_value_++ % kValues;
  *value = {.live = live, .engine_stopped = live == 0 ? 1u : 0u, .epoch = ++epoch_};
  live_ = live;
  was_stopped_ |= live == 0;
  const Driver& driver = context_->driver();
  CUresult result =
      driver.cuMemcpyHtoDAsync(device_address(mirror_.data()), value, sizeof *value, stream_.get());
  if (result == CUDA_SUCCESS) result = driver.cuEventRecord(written_.get(), stream_.get());
  if (result == CUDA_SUCCESS)
    result = driver.cuStreamWaitEvent(stream, written_.get(), CU_EVENT_WAIT_DEFAULT);
  return result;
}

}  // namespace leasehold::cuda
