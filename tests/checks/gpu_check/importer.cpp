#include "tests/checks/gpu_check/importer.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "common/cli/print_error.hpp"
#include "ipc/cuda/device_memory.hpp"
#include "kernels/cuda/device/bench_params.hpp"
#include "tests/checks/gpu_check/card.hpp"

namespace leasehold::gpu_check {
namespace {

constexpr int kTimeoutMs = 60'000;

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

/// Starts the kernel and returns while it runs.
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

Result<Importer> start_importer(const Settings& settings, ImportMode what, const UniqueFd& memory,
                                std::size_t size_bytes) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail_errno(Errc::SystemError, "socketpair", errno);
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  Child child = TRY(Child::start(
      {.argv = {std::filesystem::read_symlink("/proc/self/exe"), std::string(option_of(what)),
                std::to_string(size_bytes), "--ordinal", std::to_string(settings.ordinal)},
       .log_path = settings.out_dir + "/importer.log",
       .inherited_fds = {{"socket", theirs.get()}, {"memory", memory.get()}}}));
  Importer importer{.child = std::move(child), .socket = std::move(ours)};
  theirs = UniqueFd();  // the exit of the process then ends the wait
  pollfd wait{importer.socket.get(), POLLIN, 0};
  char byte = 0;
  if (::poll(&wait, 1, kTimeoutMs) > 0 && ::read(importer.socket.get(), &byte, 1) == 1)
    importer.result = ImportResult{byte};
  return importer;
}

Result<void> kill_importer(Importer& importer) {
  TRY(importer.child.signal(SIGKILL));
  pollfd gone{importer.child.pidfd().get(), POLLIN, 0};
  if (::poll(&gone, 1, kTimeoutMs) > 0) return {};
  return fail(Errc::TimedOut, "a killed importer does not end");
}

Result<void> write_first_word(Card& card, CUdeviceptr at) {
  TRY(card.clear(at, 256));
  return card.store(at, std::as_bytes(std::span(&kMagicWord, 1)));
}

Result<std::uint32_t> second_word(Card& card, CUdeviceptr at) {
  std::uint32_t word = 0;
  TRY(card.fetch(std::as_writable_bytes(std::span(&word, 1)), at + sizeof word));
  return word;
}

std::string text_of(const std::optional<ImportResult>& result) {
  if (!result) return "the importer ended without an answer";
  switch (*result) {
    case ImportResult::Done:
      return "done";
    case ImportResult::CannotImport:
      return "it cannot be imported, see importer.log";
    case ImportResult::WrongContent:
      return "other bytes than were written";
    case ImportResult::Refused:
      return "the driver refused the write";
  }
  return "something else";
}

}  // namespace leasehold::gpu_check
