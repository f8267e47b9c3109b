#include "kernels/cuda/launcher.hpp"

#include <fmt/format.h>

#include <atomic>
#include <thread>

namespace leasehold::cuda {

Result<std::unique_ptr<Launcher>> Launcher::create(const Context& context, const ThreadGate& gate,
                                                   std::uint32_t max_in_flight) {
  TRY(context.make_current());
  KernelLibrary library = TRY(KernelLibrary::load(context));
  Stream stream = TRY(create_stream(context));
  LauncherMirror mirror = TRY(LauncherMirror::create(context, stream.get()));
  std::unique_ptr<Launcher> launcher(
      new Launcher(context, gate, std::move(library), std::move(stream), std::move(mirror)));
  launcher->reports_ = TRY(PinnedBuffer::allocate(context, sizeof(LaunchReports)));
  launcher->reports() = {};
  for (std::uint32_t i = 0; i < max_in_flight; ++i)
    launcher->events_.push_back(TRY(create_event(context)));
  launcher->stream_end_ = TRY(create_event(context));
  return launcher;
}

void Launcher::write_mirror(SequenceMask live) {
  if (!fault_) record_failure(mirror_.write(live, stream_.get()), "writing the gate's mirror");
}

void Launcher::begin(const GateSet& set) {
  if (fault_) return;
  constexpr UnitLabel kBegin{
      .site = LaunchSite::Embedding, .layer = 0, .touches = Touches::Nothing};
  live_ = gate_.poll(set, kBegin);
  // Most steps have as many sequences as the previous step, and the mirror identifies sequences by
  // index, so it stays valid.
  if (live_ == mirror_.live()) return;
  const DriverTurn::Short turn = take_turn(set, kBegin);
  // The card is idle, so no waiter depends on an earlier epoch.
  if (watch_.finished_count() == watch_.issued_count()) {
    mirror_.restart_epochs();
    reports() = {};
  }
  write_mirror(live_);
}

// ---------------------------------------------------------------------------------- what is queued

void Launcher::fail_with(Error error) {
  if (fault_) return;
  fault_ = std::move(error);
  watch_.mark_lost();
}

void Launcher::record_failure(CUresult result, std::string_view action) {
  if (result == CUDA_SUCCESS || fault_) return;
  // A driver call of a step failed, so the context is no longer trusted, whatever the error code.
  fail_with({Errc::DeviceFault, fmt::format("{}: {}; restart this worker", action,
                                            describe(context_->driver(), result))});
}

CUresult Launcher::enqueue(KernelLaunch& launch) {
  const Result<CUfunction> function = library_.find(launch.kernel, launch.shared_bytes);
  if (!function) {
    fail_with(function.error());
    return CUDA_SUCCESS;
  }
  void* params[] = {launch.params.data()};
  return context_->driver().cuLaunchKernel(*function, launch.grid.x, launch.grid.y, launch.grid.z,
                                           launch.block_threads, 1, 1, launch.shared_bytes,
                                           stream_.get(), params, nullptr);
}

CUresult Launcher::copy(void* to, const void* from, std::size_t size_bytes) {
  return context_->driver().cuMemcpyAsync(device_address(to), device_address(from), size_bytes,
                                          stream_.get());
}

CUresult Launcher::copy_to_device(const void* to, const void* from, std::size_t size_bytes) {
  return context_->driver().cuMemcpyHtoDAsync(device_address(to), from, size_bytes, stream_.get());
}

CUresult Launcher::copy_to_host(void* to, const void* from, std::size_t size_bytes) {
  return context_->driver().cuMemcpyDtoHAsync(to, device_address(from), size_bytes, stream_.get());
}

void Launcher::zero(const std::byte* at, std::size_t size_bytes) {
  if (size_bytes == 0) return;
  enqueue_internal("clearing scratch", [&] {
    return context_->driver().cuMemsetD8Async(device_address(at), 0, size_bytes, stream_.get());
  });
}

Result<DeviceBuffer> Launcher::zeroed_buffer(std::size_t size_bytes) {
  DeviceBuffer buffer = TRY(DeviceBuffer::allocate(*context_, size_bytes));
  zero(buffer);
  return buffer;
}

CUresult Launcher::upload(CUgraphExec graph) {
  return context_->driver().cuGraphUpload(graph, stream_.get());
}

CUresult Launcher::replay(CUgraphExec graph) {
  return context_->driver().cuGraphLaunch(graph, stream_.get());
}

void Launcher::note_issued(Touches touches) {
  if (fault_) return;
  const std::uint64_t number = watch_.issued_count();
  record_failure(
      context_->driver().cuEventRecord(events_[number % events_.size()].get(), stream_.get()),
      "recording the end of a launch");
  watch_.issued(touches == Touches::TenantMemory);
}

bool Launcher::collect_finished() {
  const std::uint64_t before = watch_.finished_count();
  std::uint64_t finished = before;
  while (finished < watch_.issued_count()) {
    const CUresult result =
        context_->driver().cuEventQuery(events_[finished % events_.size()].get());
    if (result == CUDA_ERROR_NOT_READY) break;
    record_failure(result, "waiting for a launch");
    // A failed card may still run launches, so no launch counts as finished. The broker learns of
    // the failure from the end of this process.
    if (fault_) return false;
    ++finished;
  }
  if (finished == before) return false;
  watch_.finished(finished);
  return true;
}

/// The engine thread waits for a step: it first polls without pause, then yields the core between
/// polls.
void Launcher::back_off() {
  constexpr std::uint32_t kSpins = 1000;
  if (++polls_ > kSpins) std::this_thread::yield();
}

/// Polls the gate while the thread waits, so that a revocation takes effect while the card is busy.
void Launcher::poll(const GateSet& set, UnitLabel label) {
  const std::uint64_t unstamped = watch_.unstamped();  // before reading the lease words
  live_ = gate_.poll(set, label);
  if (live_ != mirror_.live()) write_mirror(live_);
  if (unstamped != 0) watch_.stamp(unstamped, mirror_.epoch());
  read_reports();
}

void Launcher::read_reports() {
  // Acquire: the card stores a report after what it reports.
  const auto graph = std::atomic_ref(reports().graph).load(std::memory_order_acquire);
  watch_.seen(static_cast<std::uint32_t>(graph >> 32));
  const auto tenant = std::atomic_ref(reports().tenant_seen).load(std::memory_order_acquire);
  watch_.seen(static_cast<std::uint32_t>(tenant), SettleScope::TenantMemory);
}

/// Returns true if more launches are over than at the last call.
bool Launcher::collect_and_poll(const GateSet& set, UnitLabel label) {
  const DriverTurn::Short turn = context_->turn().try_take();
  if (!turn) {
    live_ = gate_.poll(set, label);  // the next turn updates the mirror
    return false;
  }
  const bool has_room = collect_finished();
  poll(set, label);
  return has_room;
}

DriverTurn::Short Launcher::take_turn(const GateSet& set, UnitLabel label) {
  DriverTurn::Short turn = context_->turn().try_take();
  for (polls_ = 0; !turn; turn = context_->turn().try_take()) {
    live_ = gate_.poll(set, label);
    back_off();
  }
  return turn;
}

void Launcher::poll_until(const std::atomic<bool>& is_done, const GateSet& set, UnitLabel label) {
  for (polls_ = 0; !is_done.load(std::memory_order_acquire);) {
    live_ = gate_.poll(set, label);
    back_off();
  }
}

void Launcher::make_room(const GateSet& set, UnitLabel label) {
  polls_ = 0;
  while (!fault_ && watch_.issued_count() - watch_.finished_count() >= events_.size()) {
    if (collect_and_poll(set, label)) continue;
    back_off();
  }
}

LaunchStatus Launcher::wait_until_queued_at_most(std::uint32_t n, const GateSet& set,
                                                 UnitLabel label) {
  polls_ = 0;
  do {
    collect_and_poll(set, label);
    back_off();
  } while (!fault_ && watch_.issued_count() - watch_.finished_count() > n);
  return {fault_ ? SequenceMask{0} : live_};
}

LaunchStatus Launcher::wait_all(const GateSet& set, UnitLabel label) {
  const LaunchStatus status = wait_until_queued_at_most(0, set, label);
  const DriverTurn::Short turn = take_turn(set, label);
  wait_all();
  return {fault_ ? SequenceMask{0} : status.live};
}

/// Waits for the whole stream, including work outside units.
void Launcher::wait_all() {
  if (fault_) return;
  record_failure(context_->driver().cuEventRecord(stream_end_.get(), stream_.get()),
                 "recording the end of a step");
  record_failure(context_->driver().cuEventSynchronize(stream_end_.get()), "waiting for the card");
  if (!fault_) watch_.finished(watch_.issued_count());
}

}  // namespace leasehold::cuda
