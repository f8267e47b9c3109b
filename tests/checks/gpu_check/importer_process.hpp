/// The probe's side of the importer (importer.hpp): starts it, waits for its result, kills it.
///
/// Lifetime: the destructor ends the process. Threads: one. Errors: SystemError; TimedOut.
#pragma once

#include <optional>
#include <string>

#include "common/machine/child_process.hpp"
#include "common/machine/unique_fd.hpp"
#include "tests/checks/gpu_check/card.hpp"
#include "tests/checks/gpu_check/importer.hpp"
#include "tests/checks/gpu_check/settings.hpp"

namespace leasehold::gpu_check {

/// One importer process and its result.
struct Importer {
  Child child;
  UniqueFd socket;
  std::optional<ImportResult> result = std::nullopt;
};

Result<Importer> start_importer(const Settings& settings, ImportMode what, const UniqueFd& memory,
                                std::size_t size_bytes);

/// Waits for the result or the exit of the process.
void await_result(Importer& importer);

/// Kills the process and waits for the event of its pidfd. From then on the broker would reclaim
/// its memory.
Result<void> kill_importer(Importer& importer);

/// Writes kMagicWord, which the importer expects, and clears the words after it.
Result<void> write_first_word(Card& card, CUdeviceptr at);
/// The word that the importer writes: kReplyWord.
Result<std::uint32_t> second_word(Card& card, CUdeviceptr at);

std::string text_of(const std::optional<ImportResult>& result);

}  // namespace leasehold::gpu_check
