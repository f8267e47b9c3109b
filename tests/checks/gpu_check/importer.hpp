/// The second process of the probe: imports GPU memory from a descriptor and uses it once.
///
/// The probe passes two descriptors: 3 is a socket for the result, 4 is the memory. The process
/// ends when it is killed or the socket is closed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/machine/child_process.hpp"
#include "common/machine/unique_fd.hpp"
#include "tests/checks/gpu_check/card.hpp"
#include "tests/checks/gpu_check/stages.hpp"

namespace leasehold::gpu_check {

enum class ImportMode : std::uint8_t {
  Share,          ///< Checks for kMagicWord and writes kReplyWord after it.
  WriteReadOnly,  ///< Maps the memory read-only and tries to write.
  KeepWriting,    ///< Starts a kernel that writes to the memory for seconds.
};

inline constexpr ImportMode kImportModes[] = {ImportMode::Share, ImportMode::WriteReadOnly,
                                              ImportMode::KeepWriting};

/// The hidden program option that selects the mode; the option's value is the size in bytes.
constexpr std::string_view option_of(ImportMode mode) {
  switch (mode) {
    case ImportMode::Share:
      return "--import";
    case ImportMode::WriteReadOnly:
      return "--import-read-only";
    case ImportMode::KeepWriting:
      return "--import-keep-writing";
  }
  return "";
}

inline constexpr int kImporterSocket = 3;
inline constexpr int kImporterMemory = 4;
inline constexpr std::uint32_t kMagicWord = 0x1ea5e401;
inline constexpr std::uint32_t kReplyWord = 0x1ea5e402;

/// The result, one byte on the socket.
enum class ImportResult : char {
  Done = 'd',
  CannotImport = 'i',
  WrongContent = 'w',
  Refused = 'r'
};

/// Runs the second process and returns its exit code.
int run_importer(ImportMode what, int ordinal, std::size_t size_bytes);

// The side of the stages: starts the process and kills it. Errors: SystemError;
// TimedOut.

/// One importer process and its result. The destructor ends the process.
struct Importer {
  Child child;
  UniqueFd socket;
  std::optional<ImportResult> result = std::nullopt;
};

/// Starts the process and waits for its result or its exit.
Result<Importer> start_importer(const Settings& settings, ImportMode what, const UniqueFd& memory,
                                std::size_t size_bytes);

/// Kills the process and waits for the event of its pidfd. From then on the broker would reclaim
/// its memory.
Result<void> kill_importer(Importer& importer);

/// Writes kMagicWord, which the importer expects, and clears the words after it.
Result<void> write_first_word(Card& card, CUdeviceptr at);
/// The word that the importer writes: kReplyWord.
Result<std::uint32_t> second_word(Card& card, CUdeviceptr at);

std::string text_of(const std::optional<ImportResult>& result);

}  // namespace leasehold::gpu_check
