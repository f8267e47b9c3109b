#include "tools/checks/gpu_check/importer.hpp"

#include <unistd.h>

#include "common/print_error.hpp"
#include "ipc/cuda/device_memory.hpp"
#include "kernels/cuda/device/bench_params.hpp"
#include "tools/checks/gpu_check/card.hpp"

namespace leasehold::gpu_check {
namespace {

void send_result(ImportResult result) {
  const char byte = static_cast<char>(result);
  (void)!::write(kImporterSocket, &byte, 1);
}

/// Waits until the other end is closed.
void wait_for_close() {
  char byte = 0;
  while (::read(kImporterSocket, &byte, 1) > 0) {
  }
}

Result<void> poke(Card& card, CUdeviceptr at) {
  const device::PokeParams params{
      .gate = card.gate(), .at = cuda::device_pointer<std::uint32_t>(at), .value = kReplyWord};
  return card.run(
      {.kernel = "lh_poke", .grid = {}, .block_threads = 1, .params = cuda::KernelParams(params)});
}

Result<ImportResult> use(Card& card, CUdeviceptr at) {
  std::uint32_t first = 0;
  TRY(card.fetch(std::as_writable_bytes(std::span(&first, 1)), at));
  if (first != kMagicWord) return ImportResult::WrongContent;
  const Result<void> poked = poke(card, at + sizeof first);
  return poked ? ImportResult::Done : ImportResult::Refused;
}

/// Starts the kernel, and returns while it runs.
Result<ImportResult> keep_writing(Card& card, CUdeviceptr at, std::size_t size_bytes) {
  constexpr std::uint32_t kBlocks = 64;
  const device::KeepWritingParams params{
      .gate = card.gate(),
      .at = cuda::device_pointer<std::uint32_t>(at),
      .words_apart = static_cast<std::uint32_t>(size_bytes / sizeof(std::uint32_t) / kBlocks),
      .n_writes = UINT32_MAX - 1};
  TRY(card.begin({.kernel = "lh_keep_writing",
                  .grid = {.x = kBlocks},
                  .block_threads = 1,
                  .params = cuda::KernelParams(params)}));
  return ImportResult::Done;
}

Result<void> run(ImportMode what, int ordinal, std::size_t size_bytes) {
  const std::unique_ptr<Card> card = TRY(Card::open(ordinal));
  const UniqueFd fd(::dup(kImporterMemory));
  ::close(kImporterMemory);
  const cuda::DeviceMemory memory =
      TRY(cuda::DeviceMemory::import(card->context(), fd, size_bytes));
  const cuda::DeviceMapping mapping = TRY(cuda::DeviceMapping::map(
      memory, what == ImportMode::WriteReadOnly ? MapAccess::ReadOnly : MapAccess::ReadWrite));
  send_result(TRY(what == ImportMode::KeepWriting
                      ? keep_writing(*card, mapping.address(), size_bytes)
                      : use(*card, mapping.address())));
  wait_for_close();
  return {};
}

}  // namespace

int run_importer(ImportMode what, int ordinal, std::size_t size_bytes) {
  const Result<void> done = run(what, ordinal, size_bytes);
  if (done) return 0;
  send_result(ImportResult::CannotImport);
  return print_error("leasehold-gpu-check --import", done.error());
}

}  // namespace leasehold::gpu_check
