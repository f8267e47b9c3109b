// The kills stage checks the broker's proof by exit: after the pidfd event of a killed process, a
// kernel that the process had begun writes nothing more.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "ipc/cuda/memory_cleaner.hpp"
#include "tests/checks/gpu_check/importer.hpp"
#include "tests/checks/gpu_check/stages.hpp"

namespace leasehold::gpu_check {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr const char* kWhat = "memory: a killed process's kernel writes nothing after its exit";
constexpr std::size_t kSharedBytes = std::size_t{2} << 20;
constexpr std::chrono::seconds kStartTimeout{20};

struct Kill {
  bool was_writing = false;     ///< The kernel wrote until the kill.
  std::size_t words_after = 0;  ///< Words that changed after the memory was cleared.
  std::uint32_t reads = 0;      ///< How often the memory was read after it was cleared.
};

Result<std::vector<std::uint32_t>> words_at(Card& card, CUdeviceptr at) {
  std::vector<std::uint32_t> words(kSharedBytes / sizeof(std::uint32_t));
  TRY(card.fetch(std::as_writable_bytes(std::span(words)), at));
  return words;
}

/// Waits until the kernel writes: two reads differ.
Result<bool> is_being_written(Card& card, CUdeviceptr at) {
  const std::vector<std::uint32_t> first = TRY(words_at(card, at));
  const auto begun = SteadyClock::now();
  while (SteadyClock::now() - begun < kStartTimeout)
    if (TRY(words_at(card, at)) != first) return true;
  return false;
}

/// Returns true if this process reads what another process wrote.
Result<bool> share_once(const Settings& settings, StageReport& report, Card& card) {
  constexpr std::size_t kSize = 2 << 20;
  const cuda::DeviceMemory memory = TRY(cuda::DeviceMemory::create(card.context(), kSize));
  const cuda::DeviceMapping mapping = TRY(cuda::DeviceMapping::map(memory, MapAccess::ReadWrite));
  TRY(write_first_word(card, mapping.address()));
  const Result<UniqueFd> fd = memory.export_fd();
  report.numbers()["vmm_export"] = fd.has_value();
  report.supported("memory: leaves as a descriptor", fd);
  if (!fd) return false;
  Importer importer = TRY(start_importer(settings, ImportMode::Share, *fd, kSize));
  const bool shared = importer.result == ImportResult::Done &&
                      TRY(second_word(card, mapping.address())) == kReplyWord;
  if (shared) {
    report.require("memory: another process maps and writes it", true);
  } else {
    report.unknown("memory: another process maps and writes it", text_of(importer.result));
  }
  return shared;
}

/// Does what the broker does: the process ends, then its memory is cleared and could be lent again.
Result<Kill> kill_in_kernel(const Settings& settings, Card& card) {
  const cuda::DeviceMemory memory = TRY(cuda::DeviceMemory::create(card.context(), kSharedBytes));
  const cuda::DeviceMapping mapping = TRY(cuda::DeviceMapping::map(memory, MapAccess::ReadWrite));
  const cuda::MemoryCleaner cleaner = TRY(cuda::MemoryCleaner::create(card.context()));
  TRY(cleaner.clear(memory));
  const UniqueFd fd = TRY(memory.export_fd());
  Importer importer = TRY(start_importer(settings, ImportMode::KeepWriting, fd, kSharedBytes));
  if (importer.result != ImportResult::Done)
    return fail(Errc::SystemError, text_of(importer.result));
  Kill kill{.was_writing = TRY(is_being_written(card, mapping.address()))};
  TRY(kill_importer(importer));
  TRY(cleaner.clear(memory));
  const std::chrono::milliseconds watched(settings.tiny ? 20 : 500);
  const auto begun = SteadyClock::now();
  do {
    const std::vector<std::uint32_t> words = TRY(words_at(card, mapping.address()));
    const auto zeros = std::ranges::count(words, 0u);
    kill.words_after = std::max(kill.words_after, words.size() - static_cast<std::size_t>(zeros));
    ++kill.reads;
  } while (SteadyClock::now() - begun < watched);
  return kill;
}

}  // namespace

Result<void> check_kills(const Settings& settings, StageReport& report) {
  const std::unique_ptr<Card> card = TRY(Card::open(settings.ordinal));
  report.numbers()["processes_share_memory"] = false;
  if (!TRY(share_once(settings, report, *card))) return {};
  report.numbers()["processes_share_memory"] = true;
  const int kills = settings.tiny ? 2 : 10;
  std::size_t words_after = 0;
  int in_kernel = 0;
  for (int i = 0; i < kills; ++i) {
    const Kill kill = TRY(kill_in_kernel(settings, *card));
    if (kill.was_writing) ++in_kernel;
    words_after = std::max(words_after, kill.words_after);
  }
  report.numbers()["kills_in_kernel"] = {
      {"kills", kills}, {"in_kernel", in_kernel}, {"words_after", words_after}};
  const std::string seen = fmt::format("{} of {} kills during a kernel, {} words changed later",
                                       in_kernel, kills, words_after);
  // A kernel that had ended before the kill proves nothing.
  if (in_kernel == 0 && words_after == 0) {
    report.unknown(kWhat, seen);
  } else {
    report.require(kWhat, words_after == 0, seen);
  }
  return {};
}

}  // namespace leasehold::gpu_check
